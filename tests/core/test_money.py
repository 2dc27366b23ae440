"""Amounts are integers of minor units, exact and never guessed."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actions import money
from actions.money import BadAmount, to_minor, to_text


def test_every_price_from_a_cent_to_a_hundred_is_exact_both_ways() -> None:
    for minor in range(1, 10_001):
        text = f"{minor // 100}.{minor % 100:02}"
        assert to_minor(text, "EUR") == minor
        assert to_text(minor, "EUR") == text


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("500", "JPY", 500),
        ("1", "JPY", 1),
        ("19.99", "USD", 1_999),
        ("19.9", "USD", 1_990),
        ("19", "USD", 1_900),
        ("1.234", "KWD", 1_234),
        ("1.2", "KWD", 1_200),
        ("0.001", "KWD", 1),
        ("0.01", "EUR", 1),
        ("9999999999.99", "EUR", 999_999_999_999),
    ],
)
def test_an_amount_counts_in_the_minor_units_of_its_currency(text: str, currency: str, minor: int) -> None:
    assert to_minor(text, currency) == minor


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("500.50", "JPY"),
        ("500.0", "JPY"),
        ("10.999", "EUR"),
        ("10.990", "EUR"),
        ("1.2345", "KWD"),
        ("1e2", "EUR"),
        ("1E2", "EUR"),
        ("1,00", "EUR"),
        ("1.000,00", "EUR"),
        ("1,000.00", "EUR"),
        ("NaN", "EUR"),
        ("nan", "EUR"),
        ("Infinity", "EUR"),
        (" 5.00 ", "EUR"),
        ("5.00 ", "EUR"),
        ("5.00\n", "EUR"),
        ("٥.٠٠", "EUR"),
        ("5.0٠", "EUR"),
        ("５.００", "EUR"),
        ("1_000.00", "EUR"),
        ("1 000.00", "EUR"),
        ("-1", "EUR"),
        ("−1", "EUR"),
        ("+1", "EUR"),
        ("01.00", "EUR"),
        ("00", "EUR"),
        (".5", "EUR"),
        ("5.", "EUR"),
        (".", "EUR"),
        ("", "EUR"),
        ("0", "EUR"),
        ("0.00", "EUR"),
        ("0", "JPY"),
        ("0x10", "EUR"),
        ("1.0.0", "EUR"),
        ("€5", "EUR"),
        ("5 EUR", "EUR"),
        ("1" * 400, "EUR"),
        ("99999999999999.99", "EUR"),
    ],
)
def test_whatever_is_not_plainly_an_amount_is_refused_with_a_sentence(text: str, currency: str) -> None:
    with pytest.raises(BadAmount) as told:
        to_minor(text, currency)
    assert str(told.value).endswith((".", ")."))
    assert " " in str(told.value)


@pytest.mark.parametrize("currency", ["eur", "Eur", "EURO", "EU", "", "XYZ", "€", " EUR", "EUR ", "ЕUR"])
def test_a_currency_is_a_code_in_capitals_that_exists(currency: str) -> None:
    with pytest.raises(BadAmount, match="ISO 4217"):
        to_minor("5.00", currency)


@pytest.mark.parametrize(
    ("currency", "decimals"), [("JPY", 0), ("KRW", 0), ("EUR", 2), ("USD", 2), ("KWD", 3), ("BHD", 3)]
)
def test_each_currency_has_its_own_decimals(currency: str, decimals: int) -> None:
    assert money.exponent(currency) == decimals


@given(st.integers(1, money.MAX_MINOR - 1), st.sampled_from(["EUR", "USD", "JPY", "KWD", "TND", "CLP"]))
def test_any_amount_survives_being_written_and_read(minor: int, currency: str) -> None:
    text = to_text(minor, currency)
    assert to_minor(text, currency) == minor
    assert Decimal(text) == Decimal(minor).scaleb(-money.exponent(currency))


@given(st.text(st.sampled_from("0123456789.,-+eE_ ٣"), max_size=8))
def test_what_is_read_is_what_a_decimal_would_say(text: str) -> None:
    """No text is ever read as another value than the one that a person sees."""
    try:
        minor = to_minor(text, "EUR")
    except BadAmount:
        return
    assert Decimal(text) * 100 == minor
    assert minor > 0
    assert text.isascii()


def test_negative_amounts_are_shown_with_their_sign() -> None:
    """A difference may be negative; an intent's amount never is."""
    assert to_text(-5, "EUR") == "-0.05"
    assert to_text(-500, "JPY") == "-500"
