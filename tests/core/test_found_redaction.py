"""Found: what still gets into stored evidence, and what is masked without need."""

import json

import pytest

from actions import evidence, times
from actions.models import EvidenceKind
from actions.redaction import redact

CARD, IBAN = "4111111111111111", "DE89370400440532013000"


@pytest.mark.parametrize(
    "text",
    [
        f"{CARD} 12/27",
        "4111 1111 1111 1111 12/27",
        "4111-1111-1111-1111 123",
        f"{CARD} 500 EUR",
        f"1 {CARD}",
        f"29 11 {CARD}",
    ],
)
def test_a_card_number_beside_another_number_is_masked(text: str) -> None:
    """An expiry date or a security code follows most card numbers."""
    assert "1111" * 2 not in redact(text).replace(" ", "").replace("-", "")


@pytest.mark.parametrize(
    "text",
    [
        f"{IBAN} EUR 50",
        "DE89 3704 0044 0532 0130 00 EUR 50",
        f"{IBAN} BIC COBADEFFXXX",
        f"{IBAN} 500",
        "de89370400440532013000",
    ],
)
def test_an_iban_before_another_word_or_in_small_letters_is_masked(text: str) -> None:
    assert "04400532013" not in redact(text).replace(" ", "")
    assert "0440" not in redact(text)


@pytest.mark.parametrize("text", ["20261129214348", "20261129214306", "2026-11-29 214 348 07", "20261129000008"])
def test_a_compact_time_is_no_card_number(text: str) -> None:
    """Cards that begin with 2 begin with 2221 to 2720; one time of ten passes Luhn's test."""
    for second in range(60):
        time = f"202611292143{second:02}"
        assert redact(time) == time
    assert redact(text) == text


def _stored(body: str, *secrets: str) -> str:
    """As `dispatch.save` stores an answer: its body is a text inside of JSON."""
    found = evidence.store(
        intent_id=None,
        kind=EvidenceKind.ANSWER,
        source="http://payments",
        content={"status": 200, "body": body},
        now=times.now(),
        secrets=secrets,
    )
    return found.text


@pytest.mark.django_db
def test_a_secret_field_in_an_answers_body_is_masked() -> None:
    """The quotes of a body are escaped where it is stored."""
    assert "hunter2" not in _stored(json.dumps({"id": "re_1", "access_token": "hunter2hunter2"}))


@pytest.mark.django_db
@pytest.mark.parametrize("secret", ['sk"live"1234', "sk\\live\\1234", "sk\tlive\t1234"])
def test_a_secret_that_json_escapes_is_masked(secret: str) -> None:
    assert "1234" not in _stored(f"your key {secret} is wrong", secret)


@pytest.mark.parametrize("text", ["They paid for basic membership.", "The bearer certificate was lost."])
def test_ordinary_words_are_left_alone(text: str) -> None:
    assert redact(text) == text
