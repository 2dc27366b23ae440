"""Amounts: exactly the digits that were written, or a refusal that names the field."""

import pytest

from actions import money
from actions.api.fields import read_proposal
from actions.canonical import read_json
from actions.errors import Invalid
from actions.models import Intent
from tests.api.calling import Api, fields_of

OTHERS = '"kind":"refund","subject":"order-1","currency":"EUR"'


def minor_of(amount: str, currency: str = "EUR") -> int:
    """What a body with this spelling of an amount comes to, by the parser alone."""
    read = read_proposal(read_json(f'{{"amount":{amount},{OTHERS}}}'.encode()))
    assert read.amount is not None
    return money.to_minor(read.amount, currency)


def test_every_price_up_to_a_hundred_is_exact_as_text_and_as_number() -> None:
    for minor in range(1, 10_001):
        text = f"{minor // 100}.{minor % 100:02}"
        assert minor_of(f'"{text}"') == minor, text
        assert minor_of(text) == minor, text
        assert minor_of(text.rstrip("0") + ("0" if text.endswith("00") else "")) == minor, text


def test_whole_numbers_are_whole_units() -> None:
    assert (minor_of("5"), minor_of('"5"'), minor_of("500", "JPY"), minor_of("1.005", "KWD")) == (500, 500, 500, 1005)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("amount", "currency"),
    [
        ('"1e2"', "EUR"),
        ("1e2", "EUR"),
        ("1E+2", "EUR"),
        ("5.0e1", "EUR"),
        ('"1,00"', "EUR"),
        ('"1,000.00"', "EUR"),
        ('" 5.00 "', "EUR"),
        ('"5.00\\n"', "EUR"),
        ('"1_000.00"', "EUR"),
        ('"٥٫٠٠"', "EUR"),
        ('"٥.٠٠"', "EUR"),
        ('"５.00"', "EUR"),
        ('"+5.00"', "EUR"),
        ('"-5.00"', "EUR"),
        ("-5.00", "EUR"),
        ("-5", "EUR"),
        ("-0", "EUR"),
        ('"05.00"', "EUR"),
        ('"5."', "EUR"),
        ('".50"', "EUR"),
        ('"0x10"', "EUR"),
        ('"NaN"', "EUR"),
        ('"EUR 5"', "EUR"),
        ('""', "EUR"),
        ("0", "EUR"),
        ("0.00", "EUR"),
        ('"0.00"', "EUR"),
        ('"10.999"', "EUR"),
        ("10.999", "EUR"),
        ("50.000", "EUR"),
        ("500.50", "JPY"),
        ('"500.0"', "JPY"),
        ("99999999999999.99", "EUR"),
        ("9" * 40, "EUR"),
        ("true", "EUR"),
        ("false", "EUR"),
        ("null", "EUR"),
    ],
)
def test_anything_else_names_the_amount_and_says_what_is_wrong(api: Api, amount: str, currency: str) -> None:
    raw = f'{{"kind":"{api.kind.name}","subject":"o-1","currency":"{currency}","amount":{amount}}}'
    answer = api.propose_raw(raw.encode())
    assert fields_of(answer) == ["amount"]
    assert len(answer.json()["errors"][0]["message"]) > 8
    assert not Intent.objects.exists()


def test_truth_is_no_amount_by_its_type_and_not_by_its_spelling() -> None:
    for word in ("true", "false", "[]", "{}"):
        with pytest.raises(Invalid, match="decimal string"):
            minor_of(word)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("amount", "currency", "minor", "shown"),
    [
        ("19.99", "EUR", 1_999, "19.99"),
        ("50.1", "EUR", 5_010, "50.10"),
        ("500", "JPY", 500, "500"),
        ("1.005", "KWD", 1_005, "1.005"),
    ],
)
def test_a_number_is_stored_in_minor_units_and_shown_as_text(
    api: Api, amount: str, currency: str, minor: int, shown: str
) -> None:
    raw = f'{{"kind":"{api.kind.name}","subject":"o-1","currency":"{currency}","amount":{amount}}}'
    body = api.propose_raw(raw.encode()).json()
    assert (body["amount"], body["currency"]) == (shown, currency)
    assert Intent.objects.get(pk=body["id"]).amount_minor == minor
