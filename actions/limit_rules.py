"""Which limits an agent has: reads and judges `Agent.limits`. Pure. What each means stands in docs/limits.md.

    {"open": 20, "velocity": {"intents": 60, "minutes": 10},
     "amounts": {"EUR": {"per_action": 10000, "per_day": 100000, "per_subject_day": 10000}},
     "kinds": {"refund": {"open": 5, "amounts": {"EUR": {"per_action": 5000}}}}}

Amounts are minor units; at the top all the agent's kinds count together, under `kinds` one kind by itself as well.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from actions import money

Limits = Mapping[str, Any]
Problem = tuple[str, str]

MAX_COUNT: Final = 1_000_000
MAX_MINUTES: Final = 1_440


class LimitName(StrEnum):
    PER_ACTION = "per_action"
    PER_DAY = "per_day"
    PER_SUBJECT_DAY = "per_subject_day"
    OPEN = "open"
    VELOCITY = "velocity"


AMOUNTS: Final = (LimitName.PER_ACTION, LimitName.PER_DAY, LimitName.PER_SUBJECT_DAY)
SUMS: Final = (LimitName.PER_DAY, LimitName.PER_SUBJECT_DAY)
_OF_AGENT: Final = frozenset({"open", "velocity", "amounts", "kinds"})
_OF_KIND: Final = frozenset({"open", "amounts"})


@dataclass(frozen=True)
class Limit:
    """One limit. `most`: minor units of `currency`, or how many; `kind` empty: all the agent's kinds together;
    `minutes`: the window of a velocity."""

    name: LimitName
    most: int
    kind: str = ""
    currency: str = ""
    minutes: int = 0


def read(limits: Limits) -> list[Limit]:
    """All limits, the agent's own first, then each kind's."""
    found = list(_read(limits, ""))
    for kind, narrower in sorted(limits.get("kinds", {}).items()):
        found += _read(narrower, kind)
    return found


def _read(limits: Limits, kind: str) -> Iterator[Limit]:
    for currency, amounts in sorted(limits.get("amounts", {}).items()):
        for name in AMOUNTS:
            if name in amounts:
                yield Limit(name, amounts[name], kind=kind, currency=currency)
    if "open" in limits:
        yield Limit(LimitName.OPEN, limits["open"], kind=kind)
    if velocity := limits.get("velocity"):
        yield Limit(LimitName.VELOCITY, velocity["intents"], kind=kind, minutes=velocity["minutes"])


def applying(limits: Limits, *, kind: str, currency: str) -> list[Limit]:
    """Those that bind a proposal of `kind` for an amount in `currency` (empty: without an amount)."""
    return [one for one in read(limits) if one.kind in ("", kind) and one.currency in ("", currency)]


def covers(limits: Limits, *, kind: str, currency: str) -> bool:
    """Whether an amount in `currency` may pass without a person: no level that applies lists any currency, or one
    of them lists this one. As with a kind's own limits: nobody has said how much of any other may go."""
    levels = [limits.get("amounts", {}), limits.get("kinds", {}).get(kind, {}).get("amounts", {})]
    return not currency or not any(levels) or any(currency in level for level in levels)


def kinds_named(limits: Any) -> set[str]:
    kinds = limits.get("kinds") if isinstance(limits, dict) else None
    return set(kinds) if isinstance(kinds, dict) else set()


def faults(limits: Any) -> list[Problem]:
    """(path, sentence) for whatever is wrong with `limits`; that the kinds exist is for the caller to look at."""
    if not isinstance(limits, dict):
        return [("", "A table of limits, such as {}.")]
    return list(_faults(limits, "", _OF_AGENT))


def _faults(limits: Any, path: str, known: frozenset[str]) -> Iterator[Problem]:
    if not isinstance(limits, dict):
        yield path, "A table of limits, such as {}."
        return
    for key in limits:
        if key not in known:
            yield f"{path}{key}", f"There is no such limit; there are: {', '.join(sorted(known))}."
    if "open" in limits:
        yield from _count_faults(limits["open"], f"{path}open", least=0, most=MAX_COUNT)
    if "velocity" in limits and "velocity" in known:
        yield from _velocity_faults(limits["velocity"], f"{path}velocity")
    yield from _amounts_faults(limits.get("amounts", {}), f"{path}amounts")
    if "kinds" in known:
        yield from _kinds_faults(limits.get("kinds", {}), f"{path}kinds")


def _kinds_faults(kinds: Any, path: str) -> Iterator[Problem]:
    if not isinstance(kinds, dict):
        yield path, "A table: kind → its limits."
        return
    for kind, narrower in kinds.items():
        yield from _faults(narrower, f"{path}.{kind}.", _OF_KIND)


def _count_faults(value: Any, path: str, *, least: int, most: int) -> Iterator[Problem]:
    if type(value) is not int or not least <= value <= most:
        yield path, f"A whole number from {least} to {most}, or leave it out."


def _velocity_faults(value: Any, path: str) -> Iterator[Problem]:
    if not isinstance(value, dict) or set(value) != {"intents", "minutes"}:
        yield path, "Both intents and minutes, such as {intents = 60, minutes = 10}."
        return
    # At nothing the first proposal would pause the agent: to let it propose nothing, pause it.
    yield from _count_faults(value["intents"], f"{path}.intents", least=1, most=MAX_COUNT)
    yield from _count_faults(value["minutes"], f"{path}.minutes", least=1, most=MAX_MINUTES)


def _amounts_faults(amounts: Any, path: str) -> Iterator[Problem]:
    if not isinstance(amounts, dict):
        yield path, "A table: currency → its limits."
        return
    for currency, limits in amounts.items():
        try:
            money.exponent(currency)
        except money.BadAmount as wrong:
            yield f"{path}.{currency}", str(wrong)
            continue
        yield from _currency_faults(limits, f"{path}.{currency}")


def _currency_faults(limits: Any, path: str) -> Iterator[Problem]:
    if not isinstance(limits, dict) or not set(limits) <= set(AMOUNTS):
        yield path, f"Only {', '.join(AMOUNTS)}."
        return
    for name, minor in limits.items():
        if type(minor) is not int or not 0 <= minor <= money.MAX_MINOR:
            yield f"{path}.{name}", "An amount that Landed handles, or leave it out."
            return
    day = limits.get(LimitName.PER_DAY)
    for name in (LimitName.PER_ACTION, LimitName.PER_SUBJECT_DAY):
        # More for one than for all together can only be a slip of the decimal point.
        if day is not None and limits.get(name, 0) > day:
            yield f"{path}.{name}", "It is above per_day, so that it could never be reached."
    subject_day = limits.get(LimitName.PER_SUBJECT_DAY)
    if subject_day is not None and limits.get(LimitName.PER_ACTION, 0) > subject_day:
        yield f"{path}.{LimitName.PER_ACTION}", "It is above per_subject_day, so that it could never be reached."


def as_json(limit: Limit) -> dict[str, Any]:
    """As agents read it: every member is always there, amounts as decimal strings."""
    amount = amount_text(limit, limit.most)
    return {
        "name": limit.name.value,
        "kind": limit.kind or None,
        "amount": amount,
        "currency": limit.currency or None,
        "count": None if amount is not None else limit.most,
        "minutes": limit.minutes or None,
    }


def value_of(limit: Limit, number: int) -> str | int:
    """What is used or left of `limit`, in its own unit: a decimal string, or how many."""
    text = amount_text(limit, number)
    return number if text is None else text


def amount_text(limit: Limit, minor: int) -> str | None:
    if not limit.currency:
        return None
    try:
        return money.to_text(minor, limit.currency)
    except money.BadAmount:  # not in force any more: nothing new is proposed in it, and what there is stays readable
        return str(minor)


def words(limit: Limit) -> str:
    """`at most 100.00 EUR a day for one subject, for the kind refund`."""
    what = {
        LimitName.PER_ACTION: "{} for one action",
        LimitName.PER_DAY: "{} in 24 hours",
        LimitName.PER_SUBJECT_DAY: "{} in 24 hours for one subject and its parts",
        LimitName.OPEN: "{} unsettled intents at a time",
        LimitName.VELOCITY: f"{{}} proposals in {limit.minutes} minutes",
    }[limit.name]
    most = money.describe(limit.most, limit.currency) if limit.currency else str(limit.most)
    return f"at most {what.format(most)}" + (f", for the kind {limit.kind}" if limit.kind else "")
