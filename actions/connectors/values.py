"""Reading values out of what a downstream sent, without guessing. Pure.

All take None for "not there". What is there and is not what it should be raises Unreadable: a true, a 5.5 or
an object where an amount belongs proves nothing.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import jmespath

from actions.canonical import Number
from actions.money import BadAmount, exponent

MAX_TEXT = 255  # what the database takes as an id
_DECIMAL = re.compile(r"(-?)([0-9]{1,15})(?:\.([0-9]{1,6}))?", re.ASCII)
_CURRENCY = re.compile(r"[A-Za-z]{3}", re.ASCII)


class Unreadable(ValueError):
    """A value is not of the sort it should be."""


def evaluate(expression: str, document: Any) -> Any:
    """The JMESPath `expression` over `document`."""
    try:
        return jmespath.search(expression, document)
    except (ValueError, TypeError, AttributeError, ArithmeticError) as exc:  # its own errors are ValueErrors
        raise Unreadable(f"{expression}: {exc}"[:300]) from exc


def word(value: Any) -> str | None:
    """An id, a key, a subject, a state: short printable text, or an integer."""
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) < 10**18:
        return str(value)
    if isinstance(value, str) and not isinstance(value, Number) and len(value) <= MAX_TEXT and value.isprintable():
        return value
    raise Unreadable("not a short text")


def identifier(value: Any) -> str | None:
    if isinstance(value, bool):
        raise Unreadable("true and false are not ids")
    return word(value)


def minor_units(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 2**53:
        raise Unreadable("not an integer amount")
    return int(value)


def decimal_amount(value: Any, currency: str | None) -> int | None:
    """`"50.00"`, `50.00` as written, or `50`, in the minor units of `currency`."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise Unreadable("not a decimal amount")
    found = _DECIMAL.fullmatch(str(value))
    if not found or currency is None:
        raise Unreadable("not a decimal amount with a currency")
    sign, whole, fraction = str(found[1]), str(found[2]), str(found[3] or "")
    try:
        decimals: int = exponent(currency)
    except BadAmount as exc:
        raise Unreadable(str(exc)) from exc
    if fraction[decimals:].strip("0"):
        raise Unreadable(f"more decimals than {currency} has")
    return minor_units(int(sign + whole + fraction[:decimals].ljust(decimals, "0")))


def currency_code(value: Any) -> str | None:
    """In capitals, however it was written (Stripe writes `eur`)."""
    if value is None:
        return None
    if not isinstance(value, str) or not _CURRENCY.fullmatch(value):
        raise Unreadable("not a currency code")
    return value.upper()


def moment(value: Any) -> datetime | None:
    """Unix seconds, or RFC 3339 with a zone; None for anything that leaves room for guessing."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 10**11:  # more is milliseconds
        return datetime.fromtimestamp(value, tz=UTC)
    if not isinstance(value, str) or isinstance(value, Number):
        return None
    try:
        when = datetime.fromisoformat(value)
        return when.astimezone(UTC) if when.tzinfo else None
    except (ValueError, OverflowError):
        return None
