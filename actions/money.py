"""Amounts: integer minor units and an ISO 4217 code. No float ever. Pure."""

import re
from functools import cache

from iso4217 import Currency

_AMOUNT = re.compile(r"(0|[1-9][0-9]{0,14})(?:\.([0-9]{1,4}))?", re.ASCII)
MAX_MINOR = 10**15


class BadAmount(ValueError):
    """The amount or the currency can't be taken; the message says why."""


@cache
def exponent(currency: str) -> int:
    """How many decimals `currency` has by ISO 4217 (JPY 0, EUR 2, KWD 3).

    By the standard's own table, which payment services count by; CLDR's decimals say how prices are shown (0 for
    IDR). Raises BadAmount for a code that is not in force, and for metals and test codes, which have no minor unit.
    """
    try:
        found = Currency(currency).exponent
    except ValueError:
        found = None
    if found is None:
        raise BadAmount(f"{currency!r} is not the code of a currency in force (ISO 4217).")
    return found


def to_minor(text: str, currency: str) -> int:
    """`"19.99", "EUR"` → 1999. Only plain digits with an optional point: no sign, exponent, space or separator.

    Raises BadAmount, with a sentence, for anything else, for zero, and for more decimals than the currency has.
    """
    decimals = exponent(currency)
    found = _AMOUNT.fullmatch(text)
    if not found:
        raise BadAmount(f"{text!r} is not an amount: write digits, with a point before the decimals.")
    whole, fraction = found[1], found[2] or ""
    if len(fraction) > decimals:
        raise BadAmount(f"{text} has more decimals than {currency} has ({decimals}).")
    minor: int = int(whole) * 10**decimals + int((fraction + "0" * decimals)[:decimals] or "0")
    if minor == 0:
        raise BadAmount("The amount is zero.")
    if minor > MAX_MINOR:
        raise BadAmount(f"{text} is more than Landed handles.")
    return minor


def describe(minor: int | None, currency: str) -> str:
    """`640.00 EUR` for people; also for what a ledger claims in a currency that we don't know. Never raises."""
    if minor is None:
        return "no amount"
    try:
        return f"{to_text(minor, currency)} {currency}"
    except BadAmount:
        return f"{minor} minor units of {currency or 'no currency'}"


def to_text(minor: int, currency: str) -> str:
    """1999, "EUR" → `"19.99"`; 500, "JPY" → `"500"`. Raises BadAmount for a code that is not in force."""
    return render(minor, exponent(currency))


def render(minor: int, decimals: int) -> str:
    """1999, 2 → `"19.99"`; 500, 0 → `"500"`."""
    if not decimals:
        return str(minor)
    sign, digits = ("-" if minor < 0 else ""), str(abs(minor)).rjust(decimals + 1, "0")
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"
