"""A case that waits comes back: because somebody took it up, something new is known, or the time is over.

Below what opens cases, so that new evidence brings one back in the same transaction that stores it.
"""

from datetime import datetime

from django.contrib.auth.models import User

from reconciliation.models import CommentKind, Review
from reconciliation.reviews import commenting, deadlines

NEW_FACTS = "Back, because the ledger shows something else than before."
NEW_REASON = "Back, because there is a new reason to look at it."
TIME_IS_OVER = "Back, because the time agreed on is over."


def bring_back(review: Review, *, why: str, by: str, now: datetime) -> bool:
    """A machine (`by`: checker, clock) ends the waiting: the case is its owner's, in the queue, with a word in its
    history. Call it in the transaction that holds the intent and the case. False: it does not wait."""
    if review.waits_until is None:
        return False
    commenting.say(review, by=by, text=why, kind=CommentKind.RESUMED, to=review.owner)
    clear(review, now=now)
    return True


def clear(review: Review, *, now: datetime) -> None:
    """Ends the waiting. Before its time, the case is due as if it had never waited: putting it aside and taking it up
    again is no way to have it looked at later. For how long somebody agreed to wait at the longest stays: that was
    agreed on once."""
    if review.waits_until is not None and review.waits_until > now:
        review.due_at = deadlines.brought_forward(review, now)
    review.waits_for, review.waits_reference, review.waits_until = "", "", None
    review.version += 1
    review.save(update_fields=["waits_for", "waits_reference", "waits_until", "due_at", "version"])


def took_up(review: Review, *, person: User, note: str, now: datetime) -> None:
    """A person ends the waiting."""
    text = note.strip() or "Taken up again."
    commenting.say(review, person=person, text=text, kind=CommentKind.RESUMED)
    clear(review, now=now)
