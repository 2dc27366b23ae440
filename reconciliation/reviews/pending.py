"""Decisions between being made and taking effect: first votes, undo windows, and what carries them out.

What becomes of a decision is another row that speaks of it; the decision itself never changes.
"""

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from actions import subjects, times
from actions.errors import BadDecision, LandedError, ReviewClosed
from actions.locking import for_change
from actions.models import Intent
from reconciliation.models import Choice, ClosedHow, Decision, Review, Verdict
from reconciliation.reviews import effects, opening, people, voiding
from reconciliation.reviews.voiding import VOTES

__all__ = ["CHOICES", "OUTCOMES", "VOTES"]

# The same, with what people decide about entries.
CHOICES = (*VOTES, Choice.LINK, Choice.DUPLICATE, Choice.NOT_OURS)
# These say what happened, so they rest on a look at that moment.
OUTCOMES = (Choice.CONFIRM, Choice.FAIL)


def votes(review: Review) -> QuerySet[Decision]:
    """First votes of a case that still count: nobody seconded, undid or voided them, and nothing is pending."""
    return review.decisions.filter(choice__in=VOTES, followed_by=None, takes_effect_at=None)


def waiting() -> QuerySet[Decision]:
    """Decisions whose undo window has to end before they take effect, of all cases."""
    return Decision.objects.filter(choice__in=VOTES, followed_by=None, takes_effect_at__isnull=False)


def void(decision: Decision, *, person: User | None) -> Decision:
    """Writes down that an earlier decision does not count any more."""
    return _about(decision, Choice.VOID, person)


def decided(review: Review) -> Decision | None:
    """The decision of a case, about an intent or an entry, that waits for its undo window."""
    standing = review.decisions.filter(choice__in=CHOICES, followed_by=None, takes_effect_at__isnull=False)
    return standing.select_related("person").first()


def refuse_decided(review: Review) -> None:
    """Raises ReviewClosed while a decision waits for its undo window: by whom and when."""
    found = decided(review)
    if found is None:
        return
    who = found.person.get_full_name() or found.person.get_username() if found.person else "Somebody"
    raise ReviewClosed(
        "It takes effect in a moment, unless it is taken back.",
        words=f"Nothing was changed: {who} decided this case at {found.at:%H:%M:%S} UTC.",
        at=found.at,
    )


def undo(decision_id: int, *, person: User) -> Decision:
    """Takes one's own decision back while its undo window is open. Raises BadDecision, PersonNotAllowed."""
    people.must(people.may_decide(person))
    with transaction.atomic():
        mine = waiting().filter(pk=decision_id, person=person)
        intent = for_change(Intent).filter(decisions__in=mine).first()
        # Looked at again under the lock: the clock may have carried it out in between.
        found = mine.first() if intent is not None else None
        if found is None:
            raise BadDecision("It has taken effect already, or it is not yours to undo.")
        return _about(found, Choice.UNDO, person)


def take_effect(decision_id: int) -> bool:
    """Carries out a decision whose undo window is over; voids it when the facts have moved on meanwhile.

    False: nothing was done, because somebody did it already or it was undone.
    """
    with transaction.atomic():
        row = Decision.objects.get(pk=decision_id)
        lock_family_first(row.intent_id, Choice(row.choice))
        intent = for_change(Intent).select_related("policy", "kind", "downstream").get(decisions=row)
        review = for_change(Review).get(pk=row.review_id)
        now = times.now()
        if not waiting().filter(pk=row.pk, takes_effect_at__lte=now).exists():
            return False
        moved = facts_moved(intent, Choice(row.choice), since=row.position, digest=row.seen_digest)
        if review.closed_at is not None or intent.version != row.seen_version or moved:
            void(row, person=None)
            return True
        try:
            with transaction.atomic():
                carry_out(row, intent, now)
        except (LandedError, IntegrityError):
            # A look tied the entry, or settled the intent, at the same moment.
            void(row, person=None)
    return True


def lock_family_first(intent_id: UUID | None, choice: Choice) -> None:
    """An approval looks at the intent's whole family. Its lock comes before the row's, as when it is claimed."""
    if choice is Choice.APPROVE and intent_id is not None:
        subjects.lock_family_of(intent_id)


def carry_out(row: Decision, intent: Intent, now: datetime) -> None:
    effects.carry_out(row, intent, now=now)
    # A correction that waits for its second person was about the intent as it was.
    for proposal in row.review.decisions.filter(choice=Choice.CORRECT, about=None, followed_by=None):
        void(proposal, person=None)
    _about(row, Choice.EFFECT, row.person, now=now)
    opening.close(intent, ClosedHow.DECISION, now=now)


def _about(earlier: Decision, choice: Choice, person: User | None, *, now: datetime | None = None) -> Decision:
    return voiding.about(earlier, choice, person, now=now or times.now())


def facts_moved(intent: Intent, choice: Choice, *, since: int, digest: str) -> bool:
    """Whether a complete look after position `since` of the history showed other entries: the status may well stay
    where it is. A look that failed shows nothing, old or new."""
    later = intent.checks.filter(position__gt=since).exclude(verdict=Verdict.UNAVAILABLE)
    return choice in (*OUTCOMES, Choice.SEND_AGAIN, Choice.UPHOLD) and later.exclude(facts_digest=digest).exists()
