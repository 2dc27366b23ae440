"""The team: who has a role, who holds which case, and what was decided lately."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.contrib.auth.models import User
from django.http import HttpResponse

from actions import times
from reconciliation import mailing
from reconciliation.figures import people as figures
from reconciliation.models import Review
from reconciliation.reviews import people
from reconciliation.views import comfort
from reconciliation.views.dashboard import day_began
from reconciliation.views.frame import DeskRequest, page, show


@dataclass(frozen=True)
class Held:
    """A case that is in somebody's hands, or somebody's own."""

    review: Review
    what: str
    order: str
    holder: User | None
    until: datetime | None
    overdue: bool
    waits: bool


@page
def team(request: DeskRequest) -> HttpResponse:
    now = times.now()
    rows = list(figures.held(now)[: figures.MOST + 1])
    context: dict[str, Any] = {
        "here": "team",
        "now": now,
        "colleagues": figures.colleagues(now, today=day_began(now, comfort.zone() or UTC)),
        "held": [_row(review, now) for review in rows[: figures.MOST]],
        "more": len(rows) > figures.MOST,
        "most": figures.MOST,
        "may_supervise": people.may_supervise(request.user),
        "unsent": mailing.given_up(),
    }
    return show(request, "team.html", context)


def _row(review: Review, now: datetime) -> Held:
    intent, entry = review.intent, review.entry
    working = review.lease_until is not None and review.lease_until >= now
    waits = review.waits_until is not None and review.waits_until > now
    return Held(
        review=review,
        what=intent.kind.title if intent else "Ledger entry",
        order=intent.subject if intent else (entry.subject or entry.entry_id if entry else ""),
        holder=review.holder if working else None,
        until=review.lease_until if working else None,
        overdue=review.due_at <= now and not waits,
        waits=waits,
    )
