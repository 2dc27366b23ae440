from __future__ import annotations

from base64 import b64encode

import pytest

from actions.connectors.base import Target, redact_call, text_of
from actions.redaction import MASK
from actions.transport import Call

SECRET = 'a b/c"ü$?'


def stored(call: Call, secret: str | None = SECRET) -> dict:
    return redact_call(call, Target(name="t", base_url="https://t.example", secret=secret))


@pytest.mark.parametrize(
    "name",
    ["Authorization", "authorization", "Proxy-Authorization", "Cookie", "X-Api-Key", "apikey", "X-Token"],
)
def test_headers_that_carry_secrets_are_masked_whole(name):
    value = "Basic " + b64encode(b"user:" + SECRET.encode()).decode()
    assert stored(Call("POST", "https://t.example/", {name: value}))["headers"] == {name: MASK}


def test_the_idempotency_key_is_kept():
    headers = {"Idempotency-Key": "key-1"}
    assert stored(Call("POST", "https://t.example/", headers))["headers"] == headers


@pytest.mark.parametrize("spelt", ['a b/c"ü$?', "a%20b%2Fc%22%C3%BC%24%3F", "a+b%2Fc%22%C3%BC%24%3F", 'a b/c\\"ü$?'])
def test_the_secret_is_masked_however_it_is_spelt(spelt):
    got = stored(Call("POST", f"https://t.example/?k={spelt}", {"X-Note": f"<{spelt}>"}, f"[{spelt}]".encode()))
    assert got["url"] == f"https://t.example/?k={MASK}"
    assert got["headers"] == {"X-Note": f"<{MASK}>"}
    assert got["body"] == f"[{MASK}]"


def test_without_a_secret_nothing_is_masked():
    got = stored(Call("GET", "https://t.example/x", {"X-Note": "y"}), secret=None)
    assert got == {"method": "GET", "url": "https://t.example/x", "headers": {"X-Note": "y"}, "body": None}


def test_a_body_becomes_text_that_every_database_stores():
    assert text_of(b"a\x00b\xff") == "a\ufffdb\ufffd"
