"""Open incidents, one line each on top of the queue."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count

from actions import dispatch
from actions.models import Intent
from reconciliation import incidents
from reconciliation.models import Incident, IncidentKind, Review


@dataclass(frozen=True)
class Outage:
    """An open incident as the queue shows it: how many cases wait for its end, and what else it keeps back."""

    incident: Incident
    cases: int
    unsent: int


def outages(now: datetime) -> list[Outage]:
    """One line per open incident; three queries however many there are, one when there is none."""
    found = list(incidents.open_ones())
    if not found:
        return []
    waiting = Review.objects.filter(incident__in=found, closed_at=None).values_list("incident")
    cases = dict(waiting.annotate(Count("pk")).order_by())
    affected = [one.downstream_id for one in found if one.kind == IncidentKind.SENDING]
    due = Intent.objects.filter(dispatch.due(now), downstream__in=affected).values_list("downstream")
    unsent = dict(due.annotate(Count("pk")).order_by())
    return [
        Outage(one, cases.get(one.pk, 0), unsent.get(one.downstream_id, 0) if one.downstream_id in affected else 0)
        for one in found
    ]
