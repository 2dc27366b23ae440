"""Breakers: what a downstream leaves unanswered too often in a row is not asked any more, but for a probe.

Kept in the database, so that all workers of all hosts share one. Any answer closes it again, whatever it says.
"""

import logging
from datetime import datetime, timedelta

from django.db.models import F

from actions import hooks
from actions.models import Breaker, Downstream, Line

log = logging.getLogger(__name__)

# Seconds between probes: twice as many after each, from the first to the last.
_FIRST_S, _LAST_S = 5, 300


def unanswered(downstream: Downstream, line: Line, *, now: datetime) -> None:
    """One more try without an answer. Opens the breaker when there have been as many as the downstream allows.

    Call it last in its transaction: every worker of this downstream waits for this row.
    """
    Breaker.objects.get_or_create(downstream=downstream, line=line)
    mine = Breaker.objects.filter(downstream=downstream, line=line)
    mine.update(unanswered=F("unanswered") + 1)
    opened = mine.filter(opened_at__isnull=True, unanswered__gte=downstream.breaker_after).update(
        opened_at=now, probe_at=now + timedelta(seconds=_FIRST_S), probes=0
    )
    if opened:
        log.error("%s: %s has no answers; only probes from now on", downstream.name, line)
        hooks.tell_breaker(downstream, line, is_open=True, at=now)


def answered(downstream: Downstream, line: Line, *, now: datetime) -> None:
    """An answer came: the count begins anew, and an open breaker closes. Costs no write while all is well."""
    mine = Breaker.objects.filter(downstream=downstream, line=line, unanswered__gt=0)
    was_open = mine.filter(opened_at__isnull=False).exists()
    changed = mine.update(unanswered=0, opened_at=None, probe_at=None, probes=0)
    if changed and was_open:
        log.warning("%s: %s has answers again", downstream.name, line)
        hooks.tell_breaker(downstream, line, is_open=False, at=now)


def probe_now(downstream: Downstream, line: Line, *, now: datetime) -> bool:
    """Lets the next probe go at once: somebody knows that it is back. False: nothing is held back."""
    return Breaker.objects.filter(downstream=downstream, line=line, opened_at__isnull=False).update(probe_at=now) == 1


def open_ones(line: Line) -> dict[int, datetime]:
    """Downstreams whose breaker is open, each with the time from which on one probe may be made."""
    rows = Breaker.objects.filter(line=line, opened_at__isnull=False).values_list("downstream_id", "probe_at")
    return {pk: at for pk, at in rows if at is not None}


def waiting(line: Line, *, now: datetime) -> set[int]:
    """Downstreams that may not be asked now, not even once."""
    return {pk for pk, at in open_ones(line).items() if at > now}


def took_probe(downstream_id: int, line: Line, *, now: datetime, at_least: timedelta) -> None:
    """A probe is on its way: the next one may follow after `at_least`, and later after each that failed."""
    row = Breaker.objects.filter(downstream_id=downstream_id, line=line, opened_at__isnull=False).first()
    if row is not None:
        pause = timedelta(seconds=min(_LAST_S, _FIRST_S * 2 ** min(row.probes + 1, 10)))
        Breaker.objects.filter(pk=row.pk, opened_at__isnull=False).update(
            probe_at=now + max(pause, at_least), probes=F("probes") + 1
        )
