"""Incidents: what explains many cases at once. One is open per downstream and line, for as long as its breaker is."""

from datetime import datetime

from actions.models import Downstream, Line
from reconciliation.models import Incident, IncidentKind

_KINDS = {Line.SENDING: IncidentKind.SENDING, Line.LOOKING: IncidentKind.BOOKS}


def on_breaker(downstream: Downstream, line: str, is_open: bool, at: datetime) -> None:
    """Hears of breakers, inside the transaction that moves them."""
    kind = _KINDS[Line(line)]
    if is_open:
        Incident.objects.get_or_create(
            kind=kind,
            downstream=downstream,
            closed_at=None,
            defaults={"reason": f"no_answers_{line}", "opened_at": at},
        )
    else:
        Incident.objects.filter(kind=kind, downstream=downstream, closed_at=None).update(closed_at=at)
