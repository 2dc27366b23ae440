"""What is open: how old, why, and how much money. Cost follows what is open, not history."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, F, Model, Q, QuerySet, Sum

from actions.in_words import unsettled
from actions.models import Intent
from actions.statuses import Status
from reconciliation.models import ReasonCode, Review

# Bands of age: what each is called, and where it ends; the last has no end.
BANDS: tuple[tuple[str, timedelta | None], ...] = (
    ("under 1 h", timedelta(hours=1)),
    ("1 to 4 h", timedelta(hours=4)),
    ("4 to 24 h", timedelta(days=1)),
    ("1 to 7 days", timedelta(days=7)),
    ("7 days and more", None),
)
# Sums are taken of two parts: SQLite's integers end where nine thousand of the greatest amounts do.
_PART = 10**9


@dataclass(frozen=True)
class Counted:
    """How many cases something holds for."""

    what: str
    count: int


@dataclass(frozen=True)
class AtStake:
    """Money in one currency, in minor units; sums over currencies are no amounts and are not made."""

    currency: str
    cases: int
    open_minor: int
    unknown: int
    unknown_minor: int


def open_ones() -> QuerySet[Review]:
    return Review.objects.filter(closed_at__isnull=True)


def by_age(now: datetime) -> list[Counted]:
    """Open cases by how long ago they were opened; a case that is exactly 1 h old is in “1 to 4 h”. One query."""
    bands: dict[str, Any] = {}
    newer_than = None
    for number, (_, until) in enumerate(BANDS):
        within = Q() if newer_than is None else Q(opened_at__lte=now - newer_than)
        within &= Q() if until is None else Q(opened_at__gt=now - until)
        bands[f"band_{number}"] = Count("pk", filter=within)
        newer_than = until
    found = open_ones().aggregate(**bands)
    return [Counted(name, found[f"band_{number}"]) for number, (name, _) in enumerate(BANDS)]


def by_reason() -> list[Counted]:
    """Open cases by why they are here, the most frequent first; a case counts for each of its reasons."""
    # From the cases, not from the reasons: the rows of closed ones are never looked at.
    found = open_ones().order_by().values(code=F("reasons__code")).annotate(n=Count("reasons__pk"))
    counted = [Counted(ReasonCode(row["code"]).label, row["n"]) for row in found if row["code"]]
    return sorted(counted, key=lambda reason: (-reason.count, reason.what))


def at_stake() -> list[AtStake]:
    """Per currency: the amounts of open cases, and those of intents whose outcome is unknown. Two queries."""
    cases = _sums(open_ones())
    unknown = _sums(Intent.objects.filter(unsettled(), status=Status.UNKNOWN))
    return [
        AtStake(currency, *cases.get(currency, (0, 0)), *unknown.get(currency, (0, 0)))
        for currency in sorted({*cases, *unknown})
    ]


def _sums(rows: QuerySet[Any, Model]) -> dict[str, tuple[int, int]]:
    """Per currency how many, and the sum of their amounts."""
    known: Iterable[dict[str, Any]] = (
        rows.filter(amount_minor__isnull=False)
        .order_by()
        .values("currency")
        .annotate(n=Count("pk"), high=Sum(F("amount_minor") / _PART), low=Sum(F("amount_minor") % _PART))
    )
    return {row["currency"]: (row["n"], row["high"] * _PART + row["low"]) for row in known}
