"""What must not be stored is masked; what people need to see is not."""

import json
from typing import Any

import pytest

from actions import evidence, times
from actions.models import EvidenceKind
from actions.redaction import MASK, redact

CARDS = ["4111111111111111", "5555555555554444", "378282246310005", "6011111111111117", "2223003122003222"]


@pytest.mark.parametrize("card", CARDS)
@pytest.mark.parametrize("separator", ["", " ", "-"])
@pytest.mark.parametrize(
    "around", ["{}", "card {} was used", '{{"pan":"{}"}}', '{{"pan":{}}}', "({})", "{}, then", "pan={}"]
)
def test_a_card_number_is_masked_but_for_its_last_digits(card: str, separator: str, around: str) -> None:
    shown = separator.join(card[at : at + 4] for at in range(0, len(card), 4))
    text = around.format(shown)
    found = redact(text)
    assert shown not in found
    assert card[:12] not in found.replace(separator or "\0", "")
    assert found == text.replace(shown, f"{MASK}…{card[-4:]}")


def test_two_cards_in_one_text_are_both_masked() -> None:
    found = redact(f"{CARDS[0]} {CARDS[1]}")
    assert CARDS[0] not in found
    assert CARDS[1] not in found


@pytest.mark.parametrize(
    "iban",
    [
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "GB82 WEST 1234 5698 7654 32",
        "FR14 2004 1010 0505 0001 3M02 606",
        "NO9386011117947",
        "MT84MALT011000012345MTLCAST001S",
    ],
)
@pytest.mark.parametrize("around", ["{}", "paid to {}.", '{{"iban":"{}"}}', "to {}, today"])
def test_an_iban_is_masked(iban: str, around: str) -> None:
    found = redact(around.format(iban))
    assert iban not in found
    assert iban.replace(" ", "")[4:12] not in found.replace(" ", "")
    assert MASK in found


@pytest.mark.parametrize(
    "header",
    ["Bearer sk_live_abcdefgh12345678", "bearer   eyJhbGciOi.J9.x-y_z~1", "Basic dXNlcjpwYXNzd29yZA=="],
)
def test_a_bearer_or_basic_credential_is_masked(header: str) -> None:
    found = redact(f"authorization: {header}\nnext")
    assert header.split()[1] not in found
    assert found.endswith("\nnext")


@pytest.mark.parametrize(
    "name", ["password", "client_secret", "api_key", "apikey", "access_token", "Authorization", "webhook-secret"]
)
def test_a_field_that_names_a_secret_is_masked(name: str) -> None:
    found = redact(json.dumps({name: 'hunter"2\\', "amount": "5.00"}))
    assert "hunter" not in found
    assert '"amount": "5.00"' in found


def test_the_secrets_that_the_caller_names_are_masked_wherever_they_stand() -> None:
    found = redact("key=s3cr3t-value&x=s3cr3t-value", secrets=[None, "", "s3cr3t-value"])
    assert found == f"key={MASK}&x={MASK}"


@pytest.mark.parametrize(
    "text",
    [
        "order-4812",
        "order-4812/line-2",
        "ORDER-2026-000123456789",
        "invoice 2026-11-0000001",
        "0192f7a6-7d1e-7c3a-9b52-0f3a1c2b4d5e",
        "41111111-1111-1111-8111-111111111111",
        "f47ac10b58cc4372a5670e02b2c3d479",
        "2026-11-29T21:43:43.123456Z",
        "2026-11-29 21:43:43",
        "1764452623",
        "1764452623123",
        "1764452623123456",
        "50.00 EUR",
        "1234567890.12",
        '{"amount_minor":5000000,"currency":"EUR"}',
        "re_3OaBcDeFgHiJkLmN",
        "ch_1234567890123456",
        "4111111111111112",
        "DE00370400440532013000",
        "+49 170 1234567",
        "127.0.0.1:8000",
    ],
)
def test_order_numbers_ids_times_and_amounts_are_left_alone(text: str) -> None:
    assert redact(text) == text
    assert redact(json.dumps({"x": text})) == json.dumps({"x": text})


@pytest.mark.django_db
def test_what_is_stored_is_masked_before_its_digest_is_taken() -> None:
    content: dict[str, Any] = {"body": f"card {CARDS[0]}", "note": "sk_live_hidden"}
    found = evidence.store(
        intent_id=None,
        kind=EvidenceKind.NOTE,
        source="person:1",
        content=content,
        now=times.now(),
        secrets=["sk_live_hidden"],
    )
    found.refresh_from_db()
    assert CARDS[0] not in found.text
    assert "sk_live_hidden" not in found.text
    from actions.canonical import digest

    assert found.digest == digest(found.text, salt=found.salt)


@pytest.mark.django_db
def test_text_that_no_database_stores_is_kept_in_a_form_that_it_does() -> None:
    found = evidence.store(
        intent_id=None, kind=EvidenceKind.NOTE, source="person:1", content="a\x00b\ud800", now=times.now()
    )
    found.refresh_from_db()
    assert found.text == "a\N{SYMBOL FOR NULL}b\\ud800"
