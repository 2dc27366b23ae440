"""Decisions about entries between being made and taking effect: first votes, undo windows, and what ends them."""

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from actions import subjects, times
from actions.errors import BadDecision, LandedError
from actions.locking import for_change
from actions.models import Intent
from reconciliation.models import (
    Choice,
    Decision,
    LedgerEntry,
    Review,
)
from reconciliation.reviews import people
from reconciliation.reviews.orphans.effects import carry_out
from reconciliation.reviews.orphans.planning import CHOICES, Seen, against_duplicate, plan, seen
from reconciliation.reviews.orphans.rows import say_about


def votes(review: Review) -> QuerySet[Decision]:
    """First votes that still count: nobody seconded, undid or voided them, and nothing is pending."""
    return review.decisions.filter(choice__in=CHOICES, intent=None, followed_by=None, takes_effect_at=None)


def waiting() -> QuerySet[Decision]:
    """Decisions about entries whose undo window has to end before they take effect."""
    return Decision.objects.filter(choice__in=CHOICES, intent=None, followed_by=None, takes_effect_at__isnull=False)


def lock(intent_id: UUID) -> Intent:
    subjects.lock_family_of(intent_id)
    return for_change(Intent).select_related("kind", "policy", "downstream").get(pk=intent_id)


def against(entry: LedgerEntry, intent: Intent | None, choice: Choice) -> str:
    if intent is None:
        return ""
    return plan(entry, intent)[1] if choice is Choice.LINK else against_duplicate(entry, intent)


def due(now: datetime, *, limit: int) -> list[int]:
    found = waiting().filter(takes_effect_at__lte=now).order_by("takes_effect_at", "pk")
    return list(found.values_list("pk", flat=True)[:limit])


def undo(decision_id: int, *, person: User) -> Decision:
    """Takes one's own decision back while its undo window is open. Raises BadDecision, PersonNotAllowed."""
    people.must(people.may_decide(person))
    with transaction.atomic():
        mine = waiting().filter(pk=decision_id, person=person)
        review = for_change(Review).filter(decisions__in=mine).first()
        # Looked at again under the lock: the clock may have carried it out in between.
        found = mine.first() if review is not None else None
        if found is None:
            raise BadDecision("It has taken effect already, or it is not yours to undo.")
        return say_about(found, Choice.UNDO, person, times.now())


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
        if not waiting().filter(pk=row.pk, takes_effect_at__lte=now).exists():
            return False
        stale = seen(entry, intent) != Seen(row.seen_version, row.seen_digest)
        if review.closed_at is not None or stale or against(entry, intent, Choice(row.choice)):
            say_about(row, Choice.VOID, None, now)
            return True
        try:
            with transaction.atomic():
                carry_out(row, entry, intent, now)
        except (LandedError, IntegrityError):
            say_about(row, Choice.VOID, None, now)
    return True
