"""What an agent did, or what was done of a kind, or at a downstream: unsent, may have happened, landed, in sum."""

import contextlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import Http404, HttpResponse
from django.urls import reverse

from actions import pausing, times
from actions.errors import NotFound
from actions.models import Executor, Intent
from actions.pausing import Pausable
from actions.statuses import Status
from reconciliation.reviews import people
from reconciliation.reviews.bulk.judging import Bulk
from reconciliation.reviews.bulk.rows import MOST as MOST_AT_ONCE
from reconciliation.views import agent_limits, csv_out, paging
from reconciliation.views.frame import DeskRequest, page, show
from reconciliation.views.paging import Page

SHOWS: Final[Mapping[str, str]] = {"unsent": "Unsent", "maybe": "May have happened", "landed": "Landed"}
STATUSES: Final[Mapping[str, tuple[Status, ...]]] = {
    "unsent": (Status.HELD, Status.RECORDED),
    "maybe": (Status.SUBMITTED, Status.UNKNOWN),
    "landed": (Status.CONFIRMED,),
    "not": (Status.FAILED, Status.CANCELLED),
}
NAMES: Final[Mapping[str, str]] = {
    "unsent": "Unsent",
    "maybe": "May have happened",
    "landed": "Landed",
    "not": "Did not happen",
}
SPANS: Final[Mapping[str, tuple[str, timedelta | None]]] = {
    "1h": ("the last hour", timedelta(hours=1)),
    "24h": ("the last 24 hours", timedelta(hours=24)),
    "7d": ("the last 7 days", timedelta(days=7)),
    "30d": ("the last 30 days", timedelta(days=30)),
    "all": ("all time", None),
}
DEFAULT_SPAN: Final = "24h"
# So many of the newest are summed; the page says from when on, when there are more.
MOST_SUMMED: Final = 50_000
# Ids carry the time of the machine that made them, which may differ a little from the database's.
_SKEW: Final = timedelta(hours=1)
# Amounts are summed in two parts: whole ones would not fit into SQLite's integers when somebody means harm.
_PART: Final = 10**6
COLUMNS: Final = (
    *("intent", "kind", "agent", "downstream", "order", "amount", "currency", "status", "disputed"),
    *("settled amount", "settled currency", "external id", "proposed", "settled at"),
)


@dataclass
class Total:
    """How many of one kind in one currency, and their sum in minor units. `settled`: currency → (how many, sum)."""

    kind: str
    currency: str
    count: int = 0
    amount_minor: int | None = None
    disputed: int = 0
    settled: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """All totals of what became of them in one way."""

    name: str
    title: str
    totals: list[Total]

    @property
    def count(self) -> int:
        return sum(total.count for total in self.totals)


@dataclass(frozen=True)
class Range:
    """Since when; `since` None: ever. `text` is how the address says it, `words` how the page does."""

    text: str
    words: str
    since: datetime | None


@dataclass(frozen=True)
class Row:
    intent: Intent
    comes: str
    at: datetime | None = None


def range_of(asked: str, now: datetime) -> Range:
    """`24h`, `all`, or a time (UTC where it doesn't say); anything else is the default."""
    if asked in SPANS:
        words, span = SPANS[asked]
        return Range(asked, words, now - span if span is not None else None)
    try:
        since = datetime.fromisoformat(asked)
        since = since.replace(tzinfo=UTC) if since.tzinfo is None else since.astimezone(UTC)
        _floor(since)
    except (ValueError, OverflowError):
        return range_of(DEFAULT_SPAN, now)
    return Range(asked, f"since {since:%Y-%m-%d %H:%M} UTC", since)


def _floor(since: datetime) -> UUID:
    """The smallest id that an intent of that time can have: ids begin with their time (UUIDv7)."""
    return UUID(int=max(0, int((since - _SKEW).timestamp() * 1_000)) << 80)


def _proposed(scope: str, row: Pausable, since: datetime | None) -> QuerySet[Intent]:
    """Everything proposed since then. An agent's rides its own index, anything else the ids' own order."""
    found = Intent.objects.filter(**{scope: row})
    if since is None:
        return found
    found = found.filter(created_at__gte=since)
    return found if scope == "agent" else found.filter(pk__gte=_floor(since))


def listed(scope: str, row: Pausable, which: str, since: datetime | None) -> QuerySet[Intent]:
    """What one list shows, in its order. What is unsent is listed whenever it was proposed: it can still be sent."""
    found = _proposed(scope, row, None if which == "unsent" else since).filter(status__in=STATUSES[which])
    if which == "unsent":
        return found.order_by("pk")
    return found.order_by("-created_at", "-pk") if scope == "agent" else found.order_by("-pk")


def counted_from(scope: str, row: Pausable, since: datetime | None) -> datetime | None:
    """From when on the sums count, when there are more than are summed; else None."""
    found = _proposed(scope, row, since)
    newest = found.order_by("-created_at", "-pk") if scope == "agent" else found.order_by("-pk")
    return newest.values_list("created_at", flat=True)[MOST_SUMMED : MOST_SUMMED + 1].first()


def groups(scope: str, row: Pausable, since: datetime | None) -> list[Group]:
    """The sums. Two queries: what is unsent, and whatever else was proposed since then."""
    unsent = Intent.objects.filter(**{scope: row}, status__in=STATUSES["unsent"])
    rest = _proposed(scope, row, since).exclude(status__in=STATUSES["unsent"])
    found: dict[str, dict[tuple[str, str], Total]] = {name: {} for name in STATUSES}
    for line in (*_summed(unsent), *_summed(rest)):
        name = next(name for name, statuses in STATUSES.items() if line["status"] in statuses)
        total = found[name].setdefault(
            (line["kind__title"], line["currency"]), Total(line["kind__title"], line["currency"])
        )
        _add(total, line)
    return [Group(name, NAMES[name], [totals[key] for key in sorted(totals)]) for name, totals in found.items()]


def _summed(found: QuerySet[Intent]) -> QuerySet[Intent, dict[str, Any]]:
    by = found.order_by().values("status", "kind__title", "currency", "settled_currency")
    return by.annotate(
        n=Count("pk"),
        in_question=Count("pk", filter=Q(disputed=True)),
        parts=Sum(F("amount_minor") / _PART),
        rest=Sum(F("amount_minor") % _PART),
        settled_parts=Sum(F("settled_amount_minor") / _PART),
        settled_rest=Sum(F("settled_amount_minor") % _PART),
    )


def _add(total: Total, line: Mapping[str, Any]) -> None:
    total.count += line["n"]
    total.disputed += line["in_question"]
    if line["parts"] is not None:
        total.amount_minor = (total.amount_minor or 0) + int(line["parts"]) * _PART + int(line["rest"])
    if line["settled_parts"] is not None:
        currency = line["settled_currency"] or line["currency"]
        more = int(line["settled_parts"]) * _PART + int(line["settled_rest"])
        total.settled[currency] = total.settled.get(currency, 0) + more


def page_of(found: QuerySet[Intent], *, scope: str, which: str, after: str) -> Page[Intent]:
    """One page of a list, from behind the last row shown."""
    cursor = paging.decode(after, parts=2)
    if cursor is not None:
        # A cursor that is none shows the first page.
        with contextlib.suppress(ValueError):
            at = paging.moment(cursor[0])
            found = found.filter(_behind(scope, which, at, UUID(str(cursor[1]))))
    shown, more = paging.cut(found.select_related("kind", "agent", "downstream")[: paging.PER_PAGE + 1])
    return Page(shown, paging.encode(shown[-1].created_at.isoformat(), str(shown[-1].pk)) if more else "")


def _behind(scope: str, which: str, at: datetime, pk: UUID) -> Q:
    if which == "unsent":
        return Q(pk__gt=pk)
    if scope == "agent":
        return Q(created_at__lt=at) | Q(created_at=at, pk__lt=pk)
    return Q(pk__lt=pk)


def rows(found: Iterable[Intent], now: datetime) -> list[Row]:
    return [_row(intent, now) for intent in found]


def _row(intent: Intent, now: datetime) -> Row:
    """What comes next, in words."""
    if intent.status in STATUSES["unsent"]:
        return _unsent(intent, now)
    return _maybe(intent) if intent.status in STATUSES["maybe"] else Row(intent, "")


def _unsent(intent: Intent, now: datetime) -> Row:
    if intent.status == Status.HELD:
        return Row(intent, "waits for approval until", intent.approve_before)
    if intent.kind.paused or intent.agent.paused or intent.downstream.paused:
        return Row(intent, "not sent while paused")
    if intent.executor == Executor.CALLER:
        return Row(intent, "its caller may send it")
    due = intent.next_attempt_at is not None and intent.next_attempt_at <= now
    return Row(intent, "sent at any moment" if due else "sent", None if due else intent.next_attempt_at)


def _maybe(intent: Intent) -> Row:
    if intent.status == Status.SUBMITTED and intent.lease_until is not None:
        return Row(intent, "being sent")
    if intent.next_attempt_at is not None:
        return Row(intent, "sent again, same key,", intent.next_attempt_at)
    return Row(intent, "looked up" if intent.next_check_at else "a person finds out", intent.next_check_at)


def find(scope: str, name: str) -> Pausable:
    try:
        return pausing.find(scope, name)
    except NotFound as gone:
        raise Http404(gone.message) from None


def address(scope: str, name: str, **kept: str) -> str:
    found = reverse("did", args=[scope, name])
    return f"{found}?{urlencode(kept)}" if kept else found


@page
def did(request: DeskRequest, scope: str, name: str) -> HttpResponse:
    row, now = find(scope, name), times.now()
    asked = range_of(request.GET.get("since", ""), now)
    which = request.GET.get("show", "unsent")
    which = which if which in SHOWS else "unsent"
    after = request.GET.get("after", "")
    cut = counted_from(scope, row, asked.since)
    summed = groups(scope, row, cut or asked.since)
    counts = {group.name: group.count for group in summed}
    listing = page_of(listed(scope, row, which, asked.since), scope=scope, which=which, after=after)
    context: dict[str, Any] = {
        "here": "stops",
        "scope": scope,
        "name": name,
        "row": row,
        "change": pausing.newest(row) if row.paused else None,
        "limits": agent_limits.lines(row, now),
        "range": asked,
        "spans": [(key, words) for key, (words, _) in SPANS.items()],
        "own_span": asked.text not in SPANS,
        "groups": summed,
        "cut": cut,
        "most_summed": f"{MOST_SUMMED:,}",
        "show": which,
        "shows": [(key, title, counts[key]) for key, title in SHOWS.items()],
        "count": counts[which],
        "page": Page(rows(listing.rows, now), listing.following),
        "after": after,
        "bulk": _bulk_of(which) if people.may_decide(request.user) else None,
        "most": MOST_AT_ONCE,
        "may_pause": people.may_supervise(request.user),
        "back": address(scope, name, since=asked.text),
    }
    return show(request, "did.html", context)


def _bulk_of(which: str) -> Bulk | None:
    return {"unsent": Bulk.CANCEL, "maybe": Bulk.CHECK}.get(which)


@page
def did_csv(request: DeskRequest, scope: str, name: str) -> HttpResponse:
    """One list, whole, for a spreadsheet."""
    row, now = find(scope, name), times.now()
    asked = range_of(request.GET.get("since", ""), now)
    which = request.GET.get("show", "landed")
    which = which if which in SHOWS else "landed"
    found = listed(scope, row, which, asked.since).select_related("kind", "agent", "downstream")
    cells = (_cells(intent) for intent in found[: csv_out.MOST + 1].iterator(chunk_size=500))
    return csv_out.streamed(f"{scope}-{name}-{which}", COLUMNS, cells, now=now)


def _cells(intent: Intent) -> tuple[str, ...]:
    settled = intent.settled_currency or intent.currency
    return (
        *(str(intent.pk), intent.kind.name, intent.agent.name, intent.downstream.name, intent.subject),
        *(csv_out.amount(intent.amount_minor, intent.currency), intent.currency, intent.status),
        *("yes" if intent.disputed else "", csv_out.amount(intent.settled_amount_minor, settled)),
        *(intent.settled_currency, intent.external_id),
        *(csv_out.time(intent.created_at), csv_out.time(intent.settled_at)),
    )
