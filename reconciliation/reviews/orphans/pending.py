"""Decisions about entries between being made and taking effect. What they have in common with those about intents is
in `reviews.pending`."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from actions import subjects, times
from actions.locking import for_change
from actions.models import Intent
from reconciliation.models import (
    Choice,
    Decision,
    LedgerEntry,
    Review,
)
from reconciliation.reviews import pending
from reconciliation.reviews.orphans.effects import carry_out
from reconciliation.reviews.orphans.planning import CHOICES, Seen, against_duplicate, plan, seen


def lock(intent_id: UUID) -> Intent:
    subjects.lock_family_of(intent_id)
    return for_change(Intent).select_related("kind", "policy", "downstream").get(pk=intent_id)


def against(entry: LedgerEntry, intent: Intent | None, choice: Choice) -> str:
    if intent is None:
        return ""
    return plan(entry, intent)[1] if choice is Choice.LINK else against_duplicate(entry, intent)


def due(now: datetime, *, limit: int) -> list[int]:
    """Decisions about entries whose undo window is over."""
    return pending.due(now, limit=limit, choices=CHOICES)


def take_effect(decision_id: int) -> bool:
    """Carries out a decision whose undo window is over; voids it when the facts have moved on meanwhile.

    False: nothing was done, because somebody did it already or it was undone.
    """
    with transaction.atomic():
        row = Decision.objects.get(pk=decision_id)
        intent = lock(row.linked_id) if row.linked_id is not None else None
        review = for_change(Review).get(pk=row.review_id)
        assert review.entry_id is not None
        entry = for_change(LedgerEntry).get(pk=review.entry_id)
        now = times.now()
        if not pending.waiting(CHOICES).filter(pk=row.pk, takes_effect_at__lte=now).exists():
            return False
        other = seen(entry, intent) != Seen(row.seen_version, row.seen_digest)
        stale = review.closed_at is not None or other or bool(against(entry, intent, Choice(row.choice)))
        pending.carry_out_or_void(row, lambda: carry_out(row, entry, intent, now), stale=stale)
    return True
