"""Strict reading of JSON: every field is known, of the right sort and in bounds, or it is refused."""

import json
import math
import re
from collections.abc import Callable
from datetime import datetime

from sandbox.wire import Refused

MAX_AMOUNT_MINOR = 10**15
MAX_TEXT = 500

# Checks one value and returns it as it is kept; raises ValueError saying what the value must be.
Check = Callable[[object], object]


def parse_object(body: bytes) -> dict[str, object]:
    """A JSON object without duplicate keys or NaN; raises Refused (400 bad_json)."""
    try:
        content = json.loads(body, object_pairs_hook=_without_duplicates, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused(400, "bad_json", f"the body is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise Refused(400, "bad_json", "the body is not a JSON object")
    return content


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has the same key twice")
    return content


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def check_fields(
    content: dict[str, object], checks: dict[str, Check], *, required: tuple[str, ...] = ()
) -> dict[str, object]:
    """The checked values of `content`; raises Refused (422) for the first field that is wrong."""
    for name in content:
        if name not in checks:
            valid = list(checks)
            message = f"there is no field {name!r}; valid: {', '.join(valid)}"
            raise Refused(422, "unknown_field", message, valid=valid)
    for name in required:
        if name not in content:
            raise Refused(422, "missing_field", f"the field {name!r} is missing")
    checked: dict[str, object] = {}
    for name, value in content.items():
        try:
            checked[name] = checks[name](value)
        except ValueError as error:
            raise Refused(422, "invalid_field", f"{name} must be {error}") from None
    return checked


def text(value: object) -> str:
    wrong = ValueError(f"a string of 1 to {MAX_TEXT} characters")
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT or "\x00" in value:
        raise wrong
    try:
        value.encode()
    except UnicodeEncodeError:
        raise wrong from None
    return value


def currency(value: object) -> str:
    if not isinstance(value, str) or re.fullmatch("[A-Z]{3}", value) is None:
        raise ValueError("three capital letters")
    return value


def metadata(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError("an object")
    return value


def boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError("true or false")
    return value


def integer(low: int, high: int) -> Check:
    def check(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"an integer from {low} to {high}")
        return value

    return check


def number(low: float, high: float) -> Check:
    def check(value: object) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= high:
            raise ValueError(f"a number from {low} to {high}")
        return value

    return check


def one_of(*choices: str) -> Check:
    def check(value: object) -> object:
        if value not in choices:
            raise ValueError(f"one of: {', '.join(choices)}")
        return value

    return check


def optional(check: Check) -> Check:
    return lambda value: None if value is None else check(value)


def moment(value: object) -> float:
    """Unix seconds, from a number or from an ISO 8601 time with an offset."""
    wrong = ValueError("unix seconds or an ISO 8601 time with an offset, years 1970 to 9000")
    if isinstance(value, str):
        try:
            when = datetime.fromisoformat(value)
        except ValueError:
            raise wrong from None
        if when.tzinfo is None:
            raise wrong
        value = when.timestamp()
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong
    if not math.isfinite(value) or not 0 <= value < 221_845_000_000:
        raise wrong
    return float(value)


amount_minor = integer(1, MAX_AMOUNT_MINOR)
