"""Rows that speak of an earlier decision, and decisions that no longer fit what is known.

Below what opens cases, so that new evidence ends a decision in the same transaction that stores it.
"""

from collections.abc import Sequence
from datetime import datetime

from django.contrib.auth.models import User
from django.db.models import QuerySet

from actions import history
from actions.models import Evidence, Intent
from reconciliation.models import Choice, Decision, Review
from reconciliation.reviews import notices

# What people decide; the other choices are rows about an earlier one.
VOTES = (Choice.CONFIRM, Choice.FAIL, Choice.SEND_AGAIN, Choice.APPROVE, Choice.REJECT, Choice.UPHOLD)
# The same, about entries.
ABOUT_ENTRIES = (Choice.LINK, Choice.DUPLICATE, Choice.NOT_OURS)
# These rest on what the books show.
ON_FACTS = (Choice.CONFIRM, Choice.FAIL, Choice.SEND_AGAIN, Choice.UPHOLD)


def about(
    earlier: Decision,
    choice: Choice,
    person: User | None,
    *,
    now: datetime,
    note: Evidence | None = None,
    kept: Sequence[Evidence] = (),
) -> Decision:
    """Writes down what became of an earlier decision: undone, void, in effect; of a proposed correction also that a
    second person agrees, or refuses with a note. `kept`: evidence that they name beside the note.

    The caller holds the intent; of a case about an entry, which has a history of its own, the case.
    """
    of_case = earlier.intent_id is None
    # These name what they are about once more: an entry, and a correction all of what it would change.
    again = _CORRECTION if earlier.choice == Choice.CORRECT else _LINK if of_case else ()
    row = Decision(
        review_id=earlier.review_id,
        intent_id=earlier.intent_id,
        person=person,
        choice=choice,
        about=earlier,
        note=note,
        evidence=history.refs([*([note] if note else []), *kept]),
        seen_version=earlier.seen_version,
        payload_digest=earlier.payload_digest,
        **{name: getattr(earlier, name) for name in again},
    )
    owner, pk = (Review, earlier.review_id) if of_case else (Intent, earlier.intent_id)
    row = history.append(row, owner=owner, pk=pk, at=now)
    if choice is not Choice.EFFECT and (first := first_vote(earlier)) is not None:
        notices.vote_again(first, by=row, now=now)
    return row


_LINK = ("entry_id", "linked_id")
_CORRECTION = (*_LINK, "settled_amount_minor", "settled_currency", "seen_digest")


def first_vote(row: Decision) -> Decision | None:
    """The first of two votes that a decision is, or rests on; None for one that a single person makes."""
    if row.choice == Choice.CORRECT:
        return None  # a proposal, which somebody refuses
    return row if row.takes_effect_at is None else row.about


def facts_moved(review: Review, digest: str, *, now: datetime) -> None:
    """The books show other entries: first votes and pending decisions about what they showed are void."""
    for row in _standing(review).filter(choice__in=ON_FACTS).exclude(seen_digest=digest):
        about(row, Choice.VOID, None, now=now)


def closed_meanwhile(review: Review, *, now: datetime) -> None:
    """Something else ended the case: whatever people had decided in it has nothing left to do."""
    proposed = review.decisions.filter(choice=Choice.CORRECT, about=None, followed_by=None, intent__isnull=False)
    about_entry = review.decisions.filter(choice__in=ABOUT_ENTRIES, followed_by=None, intent=None).order_by("pk")
    for row in [*_standing(review), *proposed, *about_entry]:
        about(row, Choice.VOID, None, now=now)


def _standing(review: Review) -> QuerySet[Decision]:
    """First votes and decisions in their undo window. Rows, not people: the caller holds the intent's lock."""
    return review.decisions.filter(choice__in=VOTES, followed_by=None, intent__isnull=False).order_by("pk")
