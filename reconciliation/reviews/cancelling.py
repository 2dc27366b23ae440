"""A person withdraws what was never sent: held, or recorded and proven not to have left."""

from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction

from actions import evidence, times, withdrawing
from actions.errors import Invalid
from actions.locking import for_change
from actions.models import EvidenceKind, Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import ClosedHow, Review
from reconciliation.reviews import claiming, commenting, opening, people


def cancel(intent_id: UUID, *, person: User, note: str) -> bool:
    """Withdraws it, so that nothing is ever sent, and closes its case. False: somebody had cancelled it already.

    `note`: why, kept as evidence; the agent reads only that a person decided against it. Somebody else's case is
    theirs, unless a supervisor cancels.

    Raises TooLate (it may have been sent), ReviewHeld, Invalid (`note`), PersonNotAllowed.
    """
    people.must(people.may_decide(person))
    note = note.strip()
    if not note or len(note) > commenting.MAX:
        raise Invalid.field("note", f"Say why, in 1 to {commenting.MAX} characters.")
    with transaction.atomic():
        intent = for_change(Intent).get(pk=intent_id)
        if intent.status == Status.CANCELLED:
            return False
        _refuse_others(intent, person)
        _withdraw(intent, person, note)
    return True


def _refuse_others(intent: Intent, person: User) -> None:
    review = opening.open_review(intent)
    if review is not None and not people.may_supervise(person) and _is_anothers(review, person):
        raise claiming.why_not(review.pk)


def _is_anothers(review: Review, person: User) -> bool:
    """Whether somebody else works on it at this moment, or it belongs to somebody else."""
    held = claiming.holds_now(review, times.now()) and review.holder_id != person.pk
    return held or review.owner_id not in (None, person.pk)


def _withdraw(intent: Intent, person: User, note: str) -> None:
    now, by = times.now(), f"person:{person.pk}"
    kept = evidence.store(intent_id=intent.pk, kind=EvidenceKind.NOTE, source=by, content=note, now=now)
    gone = withdrawing.cancel(intent.pk, actor=Actor.REVIEWER, actor_id=by, reason=Reason.REJECTED, evidence=[kept])
    opening.close(gone, ClosedHow.WITHDRAWN, now=now)
