"""One incident: what is down since when, what waits for it, and what happens when it is over."""

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import Http404, HttpResponse

from actions import pausing, times
from actions.models import Agent, Attempt, Breaker, Downstream, Executor, Intent, Line
from actions.statuses import Status
from reconciliation.models import Check, Incident, IncidentKind, Review
from reconciliation.reviews import people
from reconciliation.views import agent_limits, paging, words
from reconciliation.views.frame import DeskRequest, page, show
from reconciliation.views.paging import Page

_LINES: Mapping[str, Line] = {IncidentKind.SENDING: Line.SENDING, IncidentKind.BOOKS: Line.LOOKING}


@dataclass(frozen=True)
class AtStake:
    """Of what waits, in one currency."""

    currency: str
    count: int
    amount_minor: int | None


@dataclass(frozen=True)
class Probe:
    """The newest try: when, and what came of it in words."""

    at: datetime
    came: str


def waiting(incident: Incident) -> QuerySet[Review]:
    """The open cases that wait for its end."""
    return Review.objects.filter(incident=incident, closed_at=None)


def at_stake(found: QuerySet[Any]) -> list[AtStake]:
    """Counts and sums per currency of rows with `amount_minor` and `currency`; one query.

    In two parts: SQLite's integers hold no sum of very many very large amounts.
    """
    part = 10**6
    by = found.order_by().values("currency")
    lines = by.annotate(n=Count("pk"), parts=Sum(F("amount_minor") / part), rest=Sum(F("amount_minor") % part))
    return [
        AtStake(
            line["currency"],
            line["n"],
            None if line["parts"] is None else int(line["parts"]) * part + int(line["rest"]),
        )
        for line in lines.order_by("currency")
    ]


def unsent_of(downstream: Downstream) -> QuerySet[Intent]:
    return Intent.objects.filter(downstream=downstream, status__in=(Status.HELD, Status.RECORDED))


def newest_try(incident: Incident) -> Probe | None:
    """What was sent, or looked into, last of all while it lasted."""
    if incident.kind == IncidentKind.SENDING:
        return _newest_sending(incident)
    if incident.kind == IncidentKind.BOOKS:
        return _newest_look(incident)
    return None


def _newest_sending(incident: Incident) -> Probe | None:
    tried = Attempt.objects.filter(
        intent__downstream=incident.downstream, executor=Executor.LANDED, claimed_at__gte=incident.opened_at
    )
    newest = tried.order_by("-pk").first()
    return Probe(newest.claimed_at, words.attempt_ended(newest)) if newest is not None else None


def _newest_look(incident: Incident) -> Probe | None:
    made = Check.objects.filter(intent__downstream=incident.downstream, started_at__gte=incident.opened_at)
    newest = made.order_by("-pk").first()
    return Probe(newest.started_at, newest.get_verdict_display()) if newest is not None else None


def page_of(found: QuerySet[Review], after: str) -> Page[Review]:
    """Those that are due first."""
    cursor = paging.decode(after, parts=2)
    if cursor is not None:
        # A cursor that is none shows the first page.
        with contextlib.suppress(ValueError):
            at, pk = paging.moment(cursor[0]), int(cursor[1])
            found = found.filter(Q(due_at__gt=at) | Q(due_at=at, pk__gt=pk))
    rows = found.select_related("intent__kind", "entry").order_by("due_at", "pk")
    shown, more = paging.cut(rows[: paging.PER_PAGE + 1])
    return Page(shown, paging.encode(shown[-1].due_at.isoformat(), shown[-1].pk) if more else "")


@page
def incident(request: DeskRequest, incident_id: int) -> HttpResponse:
    found = Incident.objects.select_related("downstream", "agent").filter(pk=incident_id).first()
    if found is None:
        raise Http404("There is no such incident.")
    if found.agent is not None:
        return _of_agent(request, found, found.agent)
    cases, down = waiting(found), found.downstream
    breaker = Breaker.objects.filter(downstream=down, line=_LINES.get(found.kind, ""), opened_at__isnull=False)
    stake = at_stake(cases)
    context: dict[str, Any] = {
        "here": "queue",
        "incident": found,
        "down": down,
        "paused": down is not None and down.paused,
        "change": pausing.newest(down) if down is not None and down.paused else None,
        "breaker": breaker.first() if down is not None and found.closed_at is None else None,
        "probe": newest_try(found),
        "stake": stake,
        "count": sum(one.count for one in stake),
        "unsent": at_stake(unsent_of(down)) if down is not None else [],
        "page": page_of(cases, request.GET.get("after", "")),
        "after": request.GET.get("after", ""),
        "may_pause": people.may_supervise(request.user),
    }
    return show(request, "incident.html", context)


def _of_agent(request: DeskRequest, found: Incident, agent: Agent) -> HttpResponse:
    """An agent that a limit of its own paused: what it may do, and the way on."""
    context: dict[str, Any] = {
        "here": "queue",
        "incident": found,
        "agent": agent,
        "change": pausing.newest(agent) if agent.paused else None,
        "limits": agent_limits.lines(agent, times.now()),
        "unsent": at_stake(Intent.objects.filter(agent=agent, status__in=(Status.HELD, Status.RECORDED))),
        "may_pause": people.may_supervise(request.user),
    }
    return show(request, "agent_incident.html", context)
