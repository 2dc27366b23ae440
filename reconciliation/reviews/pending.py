"""Decisions between being made and taking effect: first votes, undo windows, and what carries them out.

What becomes of a decision is another row that speaks of it; the decision itself never changes.
"""

from collections.abc import Callable, Collection
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
    """First votes of a case, about an intent or an entry, that still count: nobody seconded, undid or voided them,
    and nothing is pending."""
    return review.decisions.filter(choice__in=CHOICES, followed_by=None, takes_effect_at=None)


def waiting(choices: Collection[Choice] = VOTES) -> QuerySet[Decision]:
    """Decisions whose undo window has to end before they take effect, of all cases."""
    return Decision.objects.filter(choice__in=choices, followed_by=None, takes_effect_at__isnull=False)


def due(now: datetime, *, limit: int, choices: Collection[Choice] = VOTES) -> list[int]:
    """Those whose undo window is over, the oldest first."""
    found = waiting(choices).filter(takes_effect_at__lte=now).order_by("takes_effect_at", "pk")
    return list(found.values_list("pk", flat=True)[:limit])


def void(decision: Decision, *, person: User | None) -> Decision:
    """Writes down that an earlier decision does not count any more."""
    return voiding.about(decision, Choice.VOID, person, now=times.now())


def decided(review: Review) -> Decision | None:
    """The decision of a case, about an intent or an entry, that waits for its undo window."""
    return waiting(CHOICES).filter(review=review).select_related("person").first()


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
        mine = waiting(CHOICES).filter(pk=decision_id, person=person)
        row = mine.first()
        if row is not None:
            # Of a case about an entry, the case: it has a history of its own.
            owner, pk = (Intent, row.intent_id) if row.intent_id else (Review, row.review_id)
            for_change(owner).get(pk=pk)
        # Looked at again under the lock: the clock may have carried it out in between.
        found = mine.first()
        if found is None:
            raise BadDecision("It has taken effect already, or it is not yours to undo.")
        return voiding.about(found, Choice.UNDO, person, now=times.now())


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
        stale = review.closed_at is not None or intent.version != row.seen_version or moved
        carry_out_or_void(row, lambda: carry_out(row, intent, now), stale=stale)
    return True


def carry_out_or_void(row: Decision, act: Callable[[], None], *, stale: bool) -> None:
    """What becomes of a decision whose undo window is over: `act`, or void when the facts have moved on. The caller
    holds everything that it changes."""
    if stale:
        void(row, person=None)
        return
    try:
        with transaction.atomic():
            act()
    except (LandedError, IntegrityError):
        # A look tied the entry, or settled the intent, at the same moment.
        void(row, person=None)


def lock_family_first(intent_id: UUID | None, choice: Choice) -> None:
    """An approval looks at the intent's whole family. Its lock comes before the row's, as when it is claimed."""
    if choice is Choice.APPROVE and intent_id is not None:
        subjects.lock_family_of(intent_id)


def carry_out(row: Decision, intent: Intent, now: datetime) -> None:
    effects.carry_out(row, intent, now=now)
    # A correction that waits for its second person was about the intent as it was.
    for proposal in row.review.decisions.filter(choice=Choice.CORRECT, about=None, followed_by=None):
        void(proposal, person=None)
    voiding.about(row, Choice.EFFECT, row.person, now=now)
    opening.close(intent, ClosedHow.DECISION, now=now)


def facts_moved(intent: Intent, choice: Choice, *, since: int, digest: str) -> bool:
    """Whether a complete look after position `since` of the history showed other entries: the status may well stay
    where it is. A look that failed shows nothing, old or new."""
    later = intent.checks.filter(position__gt=since).exclude(verdict=Verdict.UNAVAILABLE)
    return choice in (*OUTCOMES, Choice.SEND_AGAIN, Choice.UPHOLD) and later.exclude(facts_digest=digest).exists()
