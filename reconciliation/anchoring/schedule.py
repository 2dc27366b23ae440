"""Anchors on a schedule: any number of clocks write one each time, into the folder of whichever comes first."""

import logging
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import DatabaseError
from django.db.models import QuerySet

from actions import times
from actions.models import Anchoring
from reconciliation.anchoring import writing
from reconciliation.anchoring.keys import BadKey

log = logging.getLogger(__name__)

_THE_ONE: Final = 1
# After a try that came to nothing.
_AGAIN: Final = timedelta(minutes=1)


def is_on() -> bool:
    return bool(settings.LANDED_ANCHORS)


def write_due() -> bool:
    """Writes an anchor when one is due and nobody else does; whether it did."""
    now = times.now()
    if not is_on() or not _claim(now):
        return False
    folder = Path(settings.LANDED_ANCHORS)
    try:
        done = writing.write_into(folder)
    except (OSError, BadKey, DatabaseError) as wrong:
        log.error("no anchor was written: %s", wrong)
        _plan().update(next_at=now + _AGAIN, problem=str(wrong)[:300])
        return False
    _plan().update(written_at=times.now(), name=done.path.name[:200], digest=done.digest, problem="")
    writing.thin_out(folder, keep=settings.LANDED_ANCHORS_KEPT)
    log.info("anchor %s: %s intents, %s cases", done.path.name, done.intents, done.cases)
    return True


def _plan() -> QuerySet[Anchoring]:
    return Anchoring.objects.filter(pk=_THE_ONE)


def _claim(now: datetime) -> bool:
    """By one conditional UPDATE. Whoever dies over it leaves it to the next turn."""
    if _plan().filter(next_at__gt=now).exists():
        return False
    Anchoring.objects.get_or_create(pk=_THE_ONE, defaults={"next_at": now})
    later = now + timedelta(seconds=settings.LANDED_ANCHOR_EVERY_S)
    return _plan().filter(next_at__lte=now).update(next_at=later) == 1
