"""A person decides: a claim, what they saw, one vote or two, and a window to take it back."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from actions import history, times
from actions.errors import BadDecision, NotFound, SeenIsStale
from actions.locking import for_change
from actions.models import EvidenceKind, Intent
from reconciliation.models import (
    Choice,
    Decision,
    DecisionReason,
    LedgerEntry,
    Review,
)
from reconciliation.reviews import claiming, pending, people
from reconciliation.reviews.deciding import Decided, refuse_second_vote
from reconciliation.reviews.differences import MAX_NOTE
from reconciliation.reviews.orphans.effects import carry_out
from reconciliation.reviews.orphans.pending import against, lock
from reconciliation.reviews.orphans.planning import (
    CHOICES,
    Ballot,
    Seen,
    blocked,
    find,
    needs_two,
    seen,
)
from reconciliation.reviews.orphans.rows import keep


def decide(
    review_id: int,
    *,
    person: User,
    choice: Choice,
    reason: DecisionReason,
    note: str,
    seen: Seen,
    named: str = "",
) -> Decided:
    """Decides a case about an entry, or gives the first of two votes. `named`: the intent's id or idempotency key.

    Raises:
        PersonNotAllowed, NotFound, ReviewClosed, ReviewHeld, BadDecision (with what is missing), SeenIsStale (the
        entry or the intent has changed since; nothing is decided).
    """
    people.must(people.may_decide(person))
    ballot = Ballot(choice, reason, note.strip(), seen, named.strip())
    review = Review.objects.filter(pk=review_id).first()
    if review is None:
        raise NotFound()
    if review.closed_at is not None:
        raise claiming.closed(review)
    _refuse_incomplete(review, ballot)
    pending.refuse_decided(review)
    refuse_second_vote(pending.votes(review).first(), person)
    claiming.claim(review_id, person=person)
    try:
        with transaction.atomic():
            return _decide(review_id, ballot, person)
    except IntegrityError as raced:
        # A check tied the entry, or settled the intent, at the same moment.
        raise SeenIsStale() from raced


def _refuse_incomplete(review: Review, ballot: Ballot) -> None:
    if blocked(review) or ballot.choice not in CHOICES:
        raise BadDecision("This can't be decided here.")
    if len(ballot.note) > MAX_NOTE:
        raise BadDecision(f"The note is longer than {MAX_NOTE} characters.")
    if ballot.reason == DecisionReason.OTHER and not ballot.note:
        raise BadDecision("The reason “other” needs a note.")
    if review.recommendation and review.recommendation != ballot.choice and not ballot.note:
        raise BadDecision("Deciding against the recommendation needs a note that says why.")
    if ballot.choice is not Choice.NOT_OURS and not ballot.named:
        raise BadDecision("Name the intent: choose one below, or write its id or idempotency key.")


def _decide(review_id: int, ballot: Ballot, person: User) -> Decided:
    entry_id = Review.objects.values_list("entry_id", flat=True).get(pk=review_id)
    assert entry_id is not None
    intent = _lock_named(LedgerEntry.objects.get(pk=entry_id), ballot)
    review = for_change(Review).get(pk=review_id)
    entry = for_change(LedgerEntry).get(pk=entry_id)
    now = times.now()
    _refuse_changed(review, entry, intent, ballot, person, now)
    vote = _vote(review, entry, intent, ballot, person, now)
    row = _row(review, entry, intent, ballot, person, now, about=vote)
    needs_second = needs_two(entry, intent) and vote is None
    if not needs_second:
        row.takes_effect_at = now + timedelta(seconds=settings.LANDED_UNDO_S)
    history.append(row, owner=Review, pk=review.pk, at=now)
    if needs_second:
        # The case waits for somebody else; whoever voted gives it back.
        claiming.stand_back(review.pk, person=person)
        return Decided(row, "second_person")
    if settings.LANDED_UNDO_S > 0:
        return Decided(row, "undo_window")
    carry_out(row, entry, intent, now)
    return Decided(row, "effective")


def _lock_named(entry: LedgerEntry, ballot: Ballot) -> Intent | None:
    """The family before the row, as everywhere: a dispute holds the family while it waits for its rows."""
    if ballot.choice is Choice.NOT_OURS:
        return None
    found = find(entry, ballot.named)
    if found is None:
        raise BadDecision("No intent of this downstream has that id or idempotency key.")
    return lock(found.pk)


def _refuse_changed(
    review: Review, entry: LedgerEntry, intent: Intent | None, ballot: Ballot, person: User, now: datetime
) -> None:
    if review.closed_at is not None:
        raise claiming.closed(review)
    pending.refuse_decided(review)
    if not claiming.holds(review, person, now):
        raise claiming.why_not(review.pk)
    if seen(entry, intent) != ballot.seen:
        raise SeenIsStale()
    if why := against(entry, intent, ballot.choice):
        raise BadDecision(why)


def _vote(
    review: Review, entry: LedgerEntry, intent: Intent | None, ballot: Ballot, person: User, now: datetime
) -> Decision | None:
    """The first vote that this ballot is the second of. One for something else, or on other facts, is voided."""
    first = pending.votes(review).first()
    if first is None:
        return None
    refuse_second_vote(first, person)
    same = (first.choice, first.linked_id, first.seen_version, first.seen_digest) == (
        ballot.choice,
        intent.pk if intent else None,
        ballot.seen.version,
        ballot.seen.digest,
    )
    if same:
        return first
    pending.void(first, person=person)
    return None


def _row(
    review: Review,
    entry: LedgerEntry,
    intent: Intent | None,
    ballot: Ballot,
    person: User,
    now: datetime,
    *,
    about: Decision | None,
) -> Decision:
    note = keep(None, ballot.note, EvidenceKind.NOTE, person.pk, now) if ballot.note else None
    return Decision(
        review=review,
        entry=entry,
        linked=intent,
        person=person,
        choice=ballot.choice,
        reason=ballot.reason,
        about=about,
        recommended=review.recommendation,
        note=note,
        evidence=history.refs([note] if note else []),
        seen_version=ballot.seen.version,
        seen_digest=ballot.seen.digest,
        payload_digest=intent.payload_digest if intent else "",
    )
