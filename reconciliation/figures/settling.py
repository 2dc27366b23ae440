"""How what was unknown came to an end: how soon, and by whom."""

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Min, OuterRef, QuerySet, Subquery

from actions.models import SettledBy, Transition
from actions.reasons import Reason
from actions.statuses import SETTLED, Status
from reconciliation.figures import percentile
from reconciliation.figures.sendings import Share
from reconciliation.models import Choice, Decision

DAYS = 30
# More than this many are not counted one by one: the newest stand for all.
MOST = 20_000
BY_PEOPLE = frozenset({SettledBy.DECISION, SettledBy.OVERRIDE})
# How long it took: what each band is called, and where it ends.
BANDS: tuple[tuple[str, timedelta | None], ...] = (
    ("under 1 min", timedelta(minutes=1)),
    ("1 to 10 min", timedelta(minutes=10)),
    ("10 to 60 min", timedelta(hours=1)),
    ("1 to 4 h", timedelta(hours=4)),
    ("4 to 24 h", timedelta(days=1)),
    ("1 day and more", None),
)


@dataclass(frozen=True)
class Settling:
    """Of the intents that became unknown in the last days: how many are settled, how soon, and by whom."""

    unknown: int
    settled: int
    by_machine: Share
    median: timedelta | None
    p90: timedelta | None
    bands: tuple[tuple[str, int], ...]


def settling(now: datetime) -> Settling:
    """One query, over the transitions to unknown of the last 30 days."""
    rows = _rows(now - timedelta(days=DAYS))
    took = [row["ended"] - row["began"] for row in rows if row["ended"] is not None]
    people = sum(row["intent__settled_by"] in BY_PEOPLE for row in rows if row["ended"] is not None)
    return Settling(
        unknown=len(rows),
        settled=len(took),
        by_machine=Share(len(took) - people, len(took)),
        median=percentile(took, 50),
        p90=percentile(took, 90),
        bands=_bands(took),
    )


def _rows(since: datetime) -> Sequence[dict[str, Any]]:
    """When each became unknown (for the first time in this span), and when it was settled."""
    first_end = Transition.objects.filter(intent=OuterRef("intent"), to_status__in=SETTLED).order_by("sequence")
    unknown = Transition.objects.filter(to_status=Status.UNKNOWN, at__gte=since).order_by()
    found = unknown.values("intent", "intent__settled_by").annotate(
        began=Min("at"), ended=Subquery(first_end.values("at")[:1])
    )
    return list(found.order_by("-began")[:MOST])


def _bands(took: Sequence[timedelta]) -> tuple[tuple[str, int], ...]:
    counts = [0] * len(BANDS)
    for span in took:
        counts[next(n for n, (_, until) in enumerate(BANDS) if until is None or span < until)] += 1
    return tuple((name, count) for (name, _), count in zip(BANDS, counts, strict=True))


@dataclass(frozen=True)
class Reversed:
    """Of one agent's intents: what was settled and then turned round, or contradicted and kept."""

    agent: str
    by_machine: int
    by_people: int
    upheld: int


def reversals(now: datetime) -> list[Reversed]:
    """Of the last 30 days, per agent. Two queries."""
    since = now - timedelta(days=DAYS)
    found: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for agent, settled_by in _turned_round(since):
        found[agent][settled_by in BY_PEOPLE] += 1
    for agent, count in _upheld(since):
        found[agent][2] += count
    return [Reversed(agent, *counts) for agent, counts in sorted(found.items())]


def _turned_round(since: datetime) -> Iterator[tuple[str, str]]:
    """The agent, and by what it had been settled before: the evidence or the person that proved wrong."""
    before = Transition.objects.filter(intent=OuterRef("intent"), sequence__lt=OuterRef("sequence"))
    settled = before.filter(to_status__in=SETTLED).order_by("-sequence").values("facts")[:1]
    turned = Transition.objects.filter(reason=Reason.OVERRIDDEN, at__gte=since, from_status__in=SETTLED)
    for agent, facts in turned.order_by().values_list("intent__agent__name", Subquery(settled)):
        yield agent, json.loads(facts or "{}").get("settled_by", "")


def _upheld(since: datetime) -> QuerySet[Decision, tuple[str, int]]:
    upheld = Decision.objects.filter(choice=Choice.EFFECT, about__choice=Choice.UPHOLD, at__gte=since)
    return upheld.order_by().values_list("intent__agent__name").annotate(n=Count("pk"))
