"""One field's value: from what TOML says to what is stored."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from django.db import models

from actions import money
from actions.canonical import MAX_DEPTH, MAX_INTEGER, BadJson, check_text
from actions.models import Agent

NONE: Final = "none"  # TOML has no null
MAX_COUNT: Final = 2_147_483_647  # of an integer column on PostgreSQL
_ZERO = re.compile(r"0(?:\.(0{1,4}))?", re.ASCII)


class BadValue(Exception):
    """`problems`: (path below the field, sentence)."""

    def __init__(self, *problems: tuple[str, str]) -> None:
        super().__init__(problems)
        self.problems = problems


def read(field: Any, value: Any) -> Any:
    """What `field` stores for `value`; of related rows their names. Raises BadValue."""
    if field.many_to_many:
        return _names(value)
    if field.name == "limits":
        return agent_limits(value) if field.model is Agent else _limits(value)
    if isinstance(field, models.JSONField):
        return _json(field, value)
    if isinstance(field, models.BooleanField):
        return _expect(bool, value, "true or false")
    if isinstance(field, models.IntegerField):
        return _count(field, value)
    return _text(field, value)


def _expect(sort: type, value: Any, words: str) -> Any:
    if type(value) is not sort:
        raise BadValue(("", f"{_sort(value)}; it must be {words}."))
    return value


def _sort(value: Any) -> str:
    """What TOML calls it; never the value, which is longer than a message and perhaps not for a log."""
    known = {bool: "a boolean", int: "an integer", float: "a float", str: "a string", list: "a list", dict: "a table"}
    return f"This is {known.get(type(value), 'a date or time')}"


def _text(field: Any, value: Any) -> str:
    text = str(_expect(str, value, "a string"))
    _storable(text)
    if text != text.strip():
        raise BadValue(("", "It begins or ends with blank space."))
    if field.choices and text not in dict(field.choices):
        raise BadValue(("", f"{text!r} is none of: {', '.join(dict(field.choices))}."))
    return text


def _count(field: Any, value: Any) -> int | None:
    if field.null and value == NONE:
        return None
    words = f'a whole number (or "{NONE}")' if field.null else "a whole number"
    number = int(_expect(int, value, words))
    if not 0 <= number <= MAX_COUNT:
        raise BadValue(("", f"It must be from 0 to {MAX_COUNT}."))
    return number


def _names(value: Any) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise BadValue(("", "It must be a list of names."))
    for name in value:
        _storable(name)
    if doubled := sorted({name for name in value if value.count(name) > 1}):
        raise BadValue(("", f"Named twice: {', '.join(doubled)}."))
    return sorted(value)


def _json(field: Any, value: Any) -> Any:
    sort, words = (dict, "a table") if isinstance(field.get_default(), dict) else (list, "a list")
    return plain_json(_expect(sort, value, words))


def plain_json(value: Any) -> Any:
    """`value` as every database gives it back: no dates, no infinities, no integer past 2^53. Raises BadValue."""
    problems: list[tuple[str, str]] = []
    found = _plain(value, "", 0, problems)
    if problems:
        raise BadValue(*problems)
    return found


def _plain(value: Any, path: str, depth: int, problems: list[tuple[str, str]]) -> Any:
    if depth > MAX_DEPTH:
        problems.append((path[:60], f"It is nested deeper than {MAX_DEPTH} levels."))
        return None
    if isinstance(value, dict):
        problems += [(path, wrong) for name in value if (wrong := _text_fault(name))]
        return {n: _plain(inner, f"{path}.{n}".lstrip("."), depth + 1, problems) for n, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner, f"{path}[{n}]", depth + 1, problems) for n, inner in enumerate(value)]
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # as JSON sees it; PostgreSQL gives back 1e2 as 100
    if wrong := _leaf_fault(value):
        problems.append((path, wrong))
    return value


def _leaf_fault(value: Any) -> str:
    if isinstance(value, str):
        return _text_fault(value)
    if isinstance(value, int):  # a boolean too
        return "This number is too large to be read alike everywhere." if abs(value) > MAX_INTEGER else ""
    finite = isinstance(value, float) and math.isfinite(value)
    return "" if finite else f"{_sort(value)} that JSON doesn't have."


def _text_fault(text: str) -> str:
    try:
        check_text(text)
    except BadJson as wrong:
        return str(wrong)
    return ""


def _storable(text: str) -> None:
    if wrong := _text_fault(text):
        raise BadValue(("", wrong))


def _limits(value: Any) -> dict[str, dict[str, int]]:
    """`{"EUR": {"review_above": "500.00"}}` in minor units; which limits there are, the model checks."""
    found: dict[str, dict[str, int]] = {}
    problems: list[tuple[str, str]] = []
    for currency, limits in _expect(dict, value, "a table of currencies").items():
        if not isinstance(limits, dict):
            problems.append((currency, 'Write a table: {review_above = "500.00"}.'))
            continue
        found[currency] = {}
        for name, amount in limits.items():
            try:
                found[currency][name] = limit_to_minor(amount, currency)
            except money.BadAmount as wrong:
                problems.append((f"{currency}.{name}", str(wrong)))
    if problems:
        raise BadValue(*problems)
    return found


def agent_limits(value: Any) -> dict[str, Any]:
    """What `Agent.limits` stores: amounts are strings in the currency itself, here and below each kind."""
    found = dict(_expect(dict, value, "a table of limits"))
    problems: list[tuple[str, str]] = []
    inner: dict[str, Callable[[Any], Any]] = {"amounts": _limits, "kinds": _limits_of_kinds}
    for key, limit in list(found.items()):
        try:
            found[key] = inner.get(key, plain_json)(limit)
        except BadValue as wrong:
            problems += [(f"{key}.{path}".rstrip("."), sentence) for path, sentence in wrong.problems]
    if problems:
        raise BadValue(*problems)
    return found


def _limits_of_kinds(value: Any) -> dict[str, Any]:
    found = {}
    problems: list[tuple[str, str]] = []
    for kind, limits in _expect(dict, value, "a table of kinds").items():
        try:
            # What is narrower for one kind has the same form, but for kinds of its own.
            found[kind] = agent_limits(limits)
        except BadValue as wrong:
            problems += [(f"{kind}.{path}".rstrip("."), sentence) for path, sentence in wrong.problems]
    if problems:
        raise BadValue(*problems)
    return found


def limit_to_minor(amount: Any, currency: str) -> int:
    """Like `money.to_minor`, but a limit may be zero. Raises BadAmount, also for what is not a string."""
    if not isinstance(amount, str):
        # 500 could be meant as 500.00 or as 5.00.
        money.exponent(currency)
        raise money.BadAmount(f'Write the amount as a string in {currency} itself, such as "500".')
    if (zero := _ZERO.fullmatch(amount)) and len(zero[1] or "") <= money.exponent(currency):
        return 0
    return money.to_minor(amount, currency)


def limits_as_written(limits: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, Any]]:
    """The way back, for people. What can't be told in major units stays as it is."""
    return {
        currency: {name: _to_text(minor, currency) for name, minor in of_currency.items()}
        for currency, of_currency in limits.items()
    }


def agent_limits_as_written(limits: Mapping[str, Any]) -> dict[str, Any]:
    """The way back, for people."""
    found = dict(limits)
    if "amounts" in found:
        found["amounts"] = limits_as_written(found["amounts"])
    if "kinds" in found:
        found["kinds"] = {kind: agent_limits_as_written(narrower) for kind, narrower in found["kinds"].items()}
    return found


def _to_text(minor: int, currency: str) -> str | int:
    try:
        return money.to_text(minor, currency)
    except money.BadAmount:
        return minor
