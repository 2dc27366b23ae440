"""What is due or stuck here. Runs beside `actions.sweep`, from the same clock."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef

from actions import times
from actions.locking import for_change
from actions.models import Intent
from actions.statuses import Status
from actions.sweep import BATCH, Swept
from reconciliation import checks
from reconciliation.models import ReasonCode, Review
from reconciliation.reviews import deciding, opening

log = logging.getLogger(__name__)


def sweep() -> Swept:
    """One pass: puts decisions into effect whose undo window is over, and opens a review for every unknown that
    nobody would otherwise look at again."""
    now = times.now()
    changed = _take_effect(now) + _ask_people()
    return Swept(changed=changed, due_to_check=Intent.objects.filter(checks.due(now)).exists())


def _take_effect(now: datetime) -> int:
    due = deciding.waiting().filter(takes_effect_at__lte=now).order_by("takes_effect_at", "pk")
    changed = 0
    for pk in list(due.values_list("pk", flat=True)[:BATCH]):
        # False: somebody else's sweep was faster, or the person took it back.
        changed += _safely(deciding.take_effect, pk)
    return changed


def _safely(act: Callable[[Any], bool], pk: object) -> bool:
    """One bad row stops no other."""
    try:
        return act(pk)
    except (OperationalError, InterfaceError):
        raise  # the database is away, for every row
    except Exception:
        log.exception("the sweep can't handle %s of %s", act.__name__, pk)
        return False


def _ask_people() -> int:
    """Nothing ends in silence: an unknown without a next check and without an open review gets a review."""
    open_review = Review.objects.filter(intent=OuterRef("pk"), closed_at__isnull=True)
    silent = Intent.objects.filter(
        ~Exists(open_review), status__in=[Status.UNKNOWN, Status.SUBMITTED], next_check_at__isnull=True
    ).filter(lease_until__isnull=True)
    return sum(_safely(_ask, pk) for pk in list(silent.values_list("pk", flat=True)[:BATCH]))


def _ask(pk: UUID) -> bool:
    with transaction.atomic():
        intent = for_change(Intent).select_related("policy").get(pk=pk)
        if intent.settled or intent.next_check_at is not None or intent.lease_until is not None:
            return False
        opening.open_for_outcome(intent, ReasonCode.STILL_UNKNOWN, now=times.now())
    return True
