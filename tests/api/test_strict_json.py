"""Bodies that are not JSON with exactly one meaning."""

from unittest import mock

import pytest

from actions.models import Intent
from tests.api.calling import Api, new_key, problem

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"\xef\xbb\xbf{}", "byte-order mark"),
        (b"\xff\xfe{\x00}\x00", "UTF-8"),
        (b'{"kind": "caf\xe9"}', "UTF-8"),
        (b'{"kind": "a\\u0000b"}', "NUL"),
        (b'{"a\\u0000b": 1}', "NUL"),
        (b'{"kind": "\\ud800"}', "surrogate"),
        (b'{"kind": "a", "kind": "b"}', "twice"),
        (b'{"params": {"x": {"a": 1, "a": 1}}}', "twice"),
        (b'{"amount": NaN}', "NaN"),
        (b'{"amount": Infinity}', "Infinity"),
        (b'{"amount": -Infinity}', "-Infinity"),
        (b'{"params": ' + b'{"a":' * 70 + b"1" + b"}" * 70 + b"}", "nested"),
        (b"[" * 100_000, "nested"),
        (b'{"amount": ' + b"9" * 5_000 + b"}", "digits"),
        (b'{"kind": "refund",}', "Not JSON"),
        (b"{'kind': 'refund'}", "Not JSON"),
        (b'{"kind": "refund"} {}', "Not JSON"),
        (b'{"amount": 05}', "Not JSON"),
        (b'{"amount": .5}', "Not JSON"),
        (b"[]", "object"),
        (b'"text"', "object"),
        (b"null", "object"),
        (b"1", "object"),
    ],
)
def test_each_gets_its_own_sentence(api: Api, raw: bytes, says: str) -> None:
    assert says in problem(api.propose_raw(raw), 400, "bad_json")["detail"]
    assert not Intent.objects.exists()


@pytest.mark.parametrize(
    "media_type",
    ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx"],
)
def test_another_media_type_is_refused(api: Api, media_type: str) -> None:
    answer = api.client.generic(
        "POST", "/api/v1/intents", b"{}", content_type=media_type, headers=api.headers(Idempotency_Key=new_key())
    )
    problem(answer, 415, "unsupported_media_type")


def test_another_encoding_is_refused(api: Api) -> None:
    answer = api.client.generic(
        "POST", "/api/v1/intents", b"{}", content_type="application/json; charset=latin-1", headers=api.headers()
    )
    problem(answer, 415, "unsupported_media_type")


@pytest.mark.parametrize("media_type", ["", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"])
def test_no_media_type_and_utf_8_are_fine(api: Api, media_type: str) -> None:
    answer = api.client.generic(
        "POST", "/api/v1/intents", b"[]", content_type=media_type, headers=api.headers(Idempotency_Key=new_key())
    )
    problem(answer, 400, "bad_json")


def test_a_body_above_one_mebibyte_is_too_large(api: Api) -> None:
    problem(api.propose_raw(b" " * 1_048_577), 413, "body_too_large")
    problem(api.propose_raw(b" " * 1_048_576), 400, "bad_json")


def test_a_chunked_body_is_told_what_it_lacks(api: Api) -> None:
    answer = api.propose_raw(b"", Transfer_Encoding="chunked")
    assert "Content-Length" in problem(answer, 400, "bad_json")["detail"]


def test_a_body_that_breaks_off_is_a_bad_one(api: Api) -> None:
    with mock.patch("django.core.handlers.wsgi.LimitedStream.read", side_effect=OSError("gone")):
        assert "broke off" in problem(api.propose_raw(b'{"kind"'), 400, "bad_json")["detail"]
