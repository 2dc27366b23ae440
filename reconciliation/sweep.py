"""What is due or stuck here. Runs beside `actions.sweep`, from the same clock."""

from datetime import datetime

from django.db import transaction
from django.db.models import Exists, OuterRef

from actions import times
from actions.locking import for_change
from actions.models import Intent
from actions.statuses import Status
from actions.sweep import BATCH, Swept
from reconciliation import checks
from reconciliation.models import ReasonCode, Review
from reconciliation.reviews import deciding, opening


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
        changed += deciding.take_effect(pk)
    return changed


def _ask_people() -> int:
    """Nothing ends in silence: an unknown without a next check and without an open review gets a review."""
    open_review = Review.objects.filter(intent=OuterRef("pk"), closed_at__isnull=True)
    silent = Intent.objects.filter(
        ~Exists(open_review), status__in=[Status.UNKNOWN, Status.SUBMITTED], next_check_at__isnull=True
    ).filter(lease_until__isnull=True)
    changed = 0
    for pk in list(silent.values_list("pk", flat=True)[:BATCH]):
        with transaction.atomic():
            intent = for_change(Intent).select_related("policy").get(pk=pk)
            if intent.settled or intent.next_check_at is not None or intent.lease_until is not None:
                continue
            opening.open_for_outcome(intent, ReasonCode.STILL_UNKNOWN, now=times.now())
            changed += 1
    return changed
