"""Amounts: integer minor units and an ISO 4217 code. No float ever. Pure."""

import re
from functools import cache

from babel.core import get_global

_AMOUNT = re.compile(r"(0|[1-9][0-9]{0,14})(?:\.([0-9]{1,4}))?", re.ASCII)
MAX_MINOR = 10**15


class BadAmount(ValueError):
    """The amount or the currency can't be taken; the message says why."""


@cache
def _fractions() -> dict[str, tuple[int, int, int, int]]:
    return dict(get_global("currency_fractions"))


@cache
def _currencies() -> frozenset[str]:
    return frozenset(code for codes in get_global("territory_currencies").values() for code, *_ in codes)


def exponent(currency: str) -> int:
    """How many decimals `currency` has by CLDR (JPY 0, EUR 2, KWD 3). Raises BadAmount for an unknown code."""
    if currency not in _currencies():
        raise BadAmount(f"{currency!r} is not a currency code of ISO 4217.")
    fractions = _fractions()
    decimals: int = (fractions.get(currency) or fractions["DEFAULT"])[0]
    return decimals


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


def to_text(minor: int, currency: str) -> str:
    """1999, "EUR" → `"19.99"`; 500, "JPY" → `"500"`."""
    decimals = exponent(currency)
    if not decimals:
        return str(minor)
    sign, digits = ("-" if minor < 0 else ""), str(abs(minor)).rjust(decimals + 1, "0")
    return f"{sign}{digits[:-decimals]}.{digits[-decimals:]}"
