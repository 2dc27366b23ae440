"""The queue: what waits for a person."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.db.models import Count, Q
from django.http import HttpResponse
from django.shortcuts import redirect

from actions import dispatch, times
from actions.models import Intent
from reconciliation import incidents
from reconciliation.models import Incident, IncidentKind, Review
from reconciliation.reviews import claiming
from reconciliation.views import paging
from reconciliation.views.frame import DeskRequest, action, page, show
from reconciliation.views.paging import Page

TABS: Mapping[str, str] = {"mine": "Mine", "unclaimed": "Unclaimed", "all": "All", "overdue": "Overdue"}
EMPTY: Mapping[str, str] = {
    "mine": "You hold no case.",
    "unclaimed": "Every open case is in somebody's hands.",
    "all": "Nothing waits for a person.",
    "overdue": "Nothing is overdue.",
}
DEFAULT = "all"
# Cases that wait for the end of an outage are one line of the queue, not many.
ONE_BY_ONE = Q(incident=None)


@dataclass(frozen=True)
class Row:
    """One case as the queue shows it; `owner`: who works on it, else whose it is."""

    review: Review
    what: str
    order: str
    why: str
    status: str
    disputed: bool
    since: datetime | None
    owner: User | None
    overdue: bool


def in_tab(tab: str, person: User, now: datetime) -> Q:
    if (incident := _incident(tab)) is not None:
        return Q(incident=incident)
    return {
        "mine": (claiming.leased(now) & Q(holder=person)) | Q(owner=person),
        "unclaimed": claiming.unclaimed(now),
        "overdue": Q(due_at__lte=now) & ONE_BY_ONE,
    }.get(tab, ONE_BY_ONE)


def _incident(tab: str) -> int | None:
    """`incident-7` is the list of the cases that wait for incident 7."""
    number = tab.removeprefix("incident-")
    return int(number) if tab != number and number.isascii() and number.isdigit() and len(number) < 19 else None


@dataclass(frozen=True)
class Outage:
    """An open incident as the queue shows it: how many cases wait for its end, and what else it keeps back."""

    incident: Incident
    cases: int
    unsent: int


def outages(now: datetime) -> list[Outage]:
    """One line per open incident; three queries however many there are."""
    found = list(incidents.open_ones())
    if not found:
        return []
    waiting = Review.objects.filter(incident__in=found, closed_at=None).values_list("incident")
    cases = dict(waiting.annotate(Count("pk")))
    affected = [one.downstream_id for one in found if one.kind == IncidentKind.SENDING]
    due = Intent.objects.filter(dispatch.due(now), downstream__in=affected).values_list("downstream")
    unsent = dict(due.annotate(Count("pk")))
    return [
        Outage(one, cases.get(one.pk, 0), unsent.get(one.downstream_id, 0) if one.downstream_id in affected else 0)
        for one in found
    ]


def counts(person: User, now: datetime) -> dict[str, int]:
    """How many open cases each tab holds; one query over what is open."""
    wanted = {tab: Count("id", filter=in_tab(tab, person, now) or None) for tab in TABS}
    return Review.objects.filter(closed_at__isnull=True).aggregate(**wanted)


def page_of(tab: str, person: User, now: datetime, after: str) -> Page[Row]:
    """The open cases of one tab: those whose customer waits first, then as they are due. Two queries."""
    found = Review.objects.filter(in_tab(tab, person, now), _behind(after), closed_at__isnull=True)
    found = found.select_related("intent__kind", "entry", "owner", "holder").prefetch_related("reasons")
    reviews, more = paging.cut(found.order_by("-customer_waiting", "due_at", "id")[: paging.PER_PAGE + 1])
    return Page([_row(review, now) for review in reviews], _cursor(reviews[-1]) if more else "")


def _cursor(last: Review) -> str:
    return paging.encode(int(last.customer_waiting), last.due_at.isoformat(), last.pk)


def _behind(cursor: str) -> Q:
    found = paging.decode(cursor, parts=3)
    if found is None:
        return Q()
    waiting, due, pk = found
    try:
        due_at = datetime.fromisoformat(str(due)).astimezone(UTC)
        later = Q(due_at__gt=due_at) | Q(due_at=due_at, pk__gt=int(pk))
    except ValueError:
        return Q()
    same = Q(customer_waiting=bool(waiting)) & later
    return same | Q(customer_waiting=False) if waiting else same


def _row(review: Review, now: datetime) -> Row:
    intent, entry = review.intent, review.entry
    why = [reason.get_code_display() for reason in review.reasons.all()]
    return Row(
        review=review,
        what=intent.kind.title if intent else "Ledger entry",
        order=intent.subject if intent else (entry.subject or entry.entry_id if entry else ""),
        why=" · ".join(why),
        status=intent.status if intent else "",
        disputed=intent.disputed if intent else False,
        since=intent.status_since if intent else None,
        owner=review.holder if review.lease_until and review.lease_until > now else review.owner,
        overdue=review.due_at <= now and review.incident_id is None,
    )


def _tab(request: DeskRequest) -> str:
    tab = request.GET.get("tab", DEFAULT)
    return tab if tab in TABS or _incident(tab) is not None else DEFAULT


@page
def queue(request: DeskRequest) -> HttpResponse:
    now, tab, after = times.now(), _tab(request), request.GET.get("after", "")
    counted = counts(request.user, now)
    context: dict[str, Any] = {
        "here": "queue",
        "now": now,
        "tab": tab,
        "tabs": [(name, title, counted[name]) for name, title in TABS.items()],
        "page": page_of(tab, request.user, now, after),
        "empty": EMPTY.get(tab, "No case waits for it."),
        "outages": outages(now),
        "newest": newest(),
        "after": after,
    }
    return show(request, "queue.html", context)


def newest() -> int:
    """The id of the newest open case: what came after it is news."""
    return Review.objects.filter(closed_at__isnull=True).order_by("-pk").values_list("pk", flat=True).first() or 0


@page
def news(request: DeskRequest) -> HttpResponse:
    """How many cases came into this tab since the page was shown. Asked for by the page itself, every 10 s."""
    tab, seen = _tab(request), request.GET.get("seen", "")
    now = times.now()
    since = int(seen) if seen.isascii() and seen.isdigit() and len(seen) < 19 else 0
    found = Review.objects.filter(in_tab(tab, request.user, now), closed_at__isnull=True, pk__gt=since)
    return show(request, "_news.html", {"tab": tab, "seen": since, "count": found.count()})


@action
def next_case(request: DeskRequest) -> HttpResponse:
    """Takes the most urgent free case."""
    review = claiming.take_next(person=request.user)
    if review is None:
        messages.info(request, "No case is free at the moment.")
        return redirect("queue")
    return redirect("case", review.pk)
