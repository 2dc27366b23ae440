"""How often no answer came: sendings of the last days, per downstream."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo

from django.db.models import Count, OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import TruncDate

from actions.models import Attempt, Downstream, Intent, Result

DAYS = 7
# A subquery, not a join: the database begins with these sendings, and never with all intents of a downstream.
_DOWNSTREAM = Subquery(Intent.objects.filter(pk=OuterRef("intent")).values("downstream")[:1])
_NO_ANSWER = Count("pk", filter=Q(result=Result.NO_ANSWER))


@dataclass(frozen=True)
class Share:
    """So many of so many; no share of none."""

    part: int
    of: int

    @property
    def percent(self) -> float | None:
        return None if not self.of else 100 * self.part / self.of


@dataclass(frozen=True)
class UnknownRate:
    """Of one downstream's sendings: how many were ever unknown."""

    name: str
    last_day: Share
    last_days: Share
    per_day: tuple[tuple[date, Share], ...]


def _ended(since: datetime) -> QuerySet[Attempt]:
    """Sendings since then that have ended in some way: what is under way is neither."""
    return Attempt.objects.filter(claimed_at__gte=since, closed_at__isnull=False).order_by()


def unknown_rates(now: datetime, at: tzinfo) -> list[UnknownRate]:
    """For the last 24 hours, the last 7 days, and each of those days in the time zone `at`. Three queries.

    A sending counts as unknown when nobody knew how it ended when it was given up, whatever was learnt later.
    """
    days = _days(now, at)
    begin = datetime.combine(days[0], datetime.min.time(), at)
    last_day, per_day = _totals(now - timedelta(days=1)), _per_day(begin, at)
    names = dict(Downstream.objects.values_list("pk", "title"))
    found = []
    for pk in sorted(per_day, key=lambda pk: (names.get(pk, ""), pk)):
        shares = tuple((day, per_day[pk].get(day, Share(0, 0))) for day in days)
        total = Share(sum(share.part for _, share in shares), sum(share.of for _, share in shares))
        found.append(UnknownRate(names.get(pk, ""), last_day.get(pk, Share(0, 0)), total, shares))
    return found


def _days(now: datetime, at: tzinfo) -> list[date]:
    today = now.astimezone(at).date()
    return [today - timedelta(days=back) for back in range(DAYS - 1, -1, -1)]


def _totals(since: datetime) -> dict[int, Share]:
    rows = _ended(since).values(to=_DOWNSTREAM).annotate(n=Count("pk"), unknown=_NO_ANSWER)
    return {row["to"]: Share(row["unknown"], row["n"]) for row in rows}


def _per_day(since: datetime, at: tzinfo) -> dict[int, dict[date, Share]]:
    rows = (
        _ended(since)
        .values(to=_DOWNSTREAM, day=TruncDate("claimed_at", tzinfo=at))
        .annotate(n=Count("pk"), unknown=_NO_ANSWER)
    )
    found: dict[int, dict[date, Share]] = defaultdict(dict)
    for row in rows:
        found[row["to"]][row["day"]] = Share(row["unknown"], row["n"])
    return found
