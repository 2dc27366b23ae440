"""A person decides what an entry is that no intent explains: it belongs to an intent, is a duplicate, or is not ours.

The decisions are rows of the case's own chain, because they are about no intent before they take effect. What follows
for an intent is written into its history as well.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Literal
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from actions import evidence, history, money, policy, subjects, times, transitions
from actions.canonical import canonical, digest
from actions.errors import BadDecision, LandedError, NotFound, SeenIsStale
from actions.locking import for_change
from actions.models import Evidence, EvidenceKind, Intent, Observed, SettledBy
from actions.models.history import plain
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import (
    Choice,
    ClosedHow,
    Decision,
    DecisionReason,
    Difference,
    EntryRole,
    EntryState,
    LedgerEntry,
    LeftToDo,
    Match,
    MatchRole,
    Purpose,
    Review,
)
from reconciliation.reviews import claiming, differences, effects, opening, people

CHOICES = (Choice.LINK, Choice.DUPLICATE, Choice.NOT_OURS)
MAX_NOTE = 4_000
# As many intents on the entry's order are offered by themselves; any other can be named.
MOST_OFFERED = 10

State = Literal["effective", "undo_window", "second_person"]


class Follows(StrEnum):
    """What a link does."""

    CONFIRM = "confirm"
    TIE = "tie"
    DUPLICATE = "duplicate"
    DISPUTE = "dispute"
    TAKEN_BACK = "taken_back"


WORDS = {
    Follows.CONFIRM: "It is confirmed: this entry settles it.",
    Follows.TIE: "It stays confirmed, and this entry is what settled it.",
    Follows.DUPLICATE: "Another entry settles it: this one is its duplicate, and money to recover.",
    Follows.DISPUTE: "It counts as failed: it becomes disputed, and a person looks whether that was wrong.",
    Follows.TAKEN_BACK: "It stays confirmed, and what was taken back is listed as still to send.",
}


@dataclass(frozen=True)
class Seen:
    """What was on the person's screen: the named intent's version (0: none), and the digest of the facts."""

    version: int
    digest: str


@dataclass(frozen=True)
class Decided:
    decision: Decision
    state: State


@dataclass(frozen=True)
class Offer:
    """An intent that can be named, and what would follow. `against_*`: why it can't be, "" when it can."""

    intent: Intent
    seen: Seen
    follows: str
    against_link: str
    against_duplicate: str
    needs_two: bool


@dataclass(frozen=True)
class _Ballot:
    choice: Choice
    reason: DecisionReason
    note: str
    seen: Seen
    named: str


# What a page needs


def offers(entry: LedgerEntry, *, besides: str = "") -> list[Offer]:
    """The newest intents on the entry's order, and the one that somebody named (`besides`: its id or key), first.

    A bounded number of queries.
    """
    named = find(entry, besides) if besides else None
    on_order = Intent.objects.none()
    if entry.subject:
        on_order = Intent.objects.filter(downstream=entry.downstream_id, family=subjects.family_of(entry.subject))
    found = {named.pk: named} if named else {}
    rows = on_order.select_related("kind", "policy").order_by("-created_at", "-pk")[:MOST_OFFERED]
    found |= {row.pk: row for row in rows if row.pk not in found}
    return [_offer(entry, intent) for intent in found.values()]


def _offer(entry: LedgerEntry, intent: Intent) -> Offer:
    follows, against = plan(entry, intent)
    return Offer(
        intent=intent,
        seen=seen(entry, intent),
        follows=WORDS[follows] if follows else "",
        against_link=against,
        against_duplicate=against_duplicate(entry, intent),
        needs_two=needs_two(entry, intent),
    )


def find(entry: LedgerEntry, named: str) -> Intent | None:
    """The intent of the entry's downstream with this id or idempotency key."""
    text = named.strip()
    by = Q(idempotency_key=text)
    with suppress(ValueError):
        by |= Q(pk=UUID(text))
    mine = Intent.objects.filter(by, downstream=entry.downstream_id)
    return mine.select_related("kind", "policy").order_by("-pk").first() if text else None


def seen(entry: LedgerEntry, intent: Intent | None) -> Seen:
    """What a page that shows them now has to send back with a decision."""
    facts: list[Any] = [plain(getattr(entry, name)) for name in _FACTS]
    if intent is None:
        return Seen(0, digest(canonical([*map(str, facts)])))
    follows, _ = plan(entry, intent)
    return Seen(intent.version, digest(canonical([*map(str, facts), str(intent.pk), str(follows)])))


_FACTS = (
    "entry_id",
    "role",
    "state",
    "key",
    "subject",
    "amount_minor",
    "currency",
    "settled_amount_minor",
    "settled_currency",
    "booked_at",
)


def plan(entry: LedgerEntry, intent: Intent) -> tuple[Follows | None, str]:
    """What a link of this entry to this intent does now; or None, and why it can't be made."""
    follows, against = _plan(entry, intent)
    against = _another_ones(entry, intent) or against
    return (None, against) if against else (follows, "")


def _plan(entry: LedgerEntry, intent: Intent) -> tuple[Follows | None, str]:
    status = intent.status
    if entry.role == EntryRole.REVERSAL:
        why = "" if status == Status.CONFIRMED else "Only what is confirmed can have been taken back."
        return Follows.TAKEN_BACK, why
    if status == Status.FAILED:
        return Follows.DISPUTE, ""
    if status == Status.CONFIRMED and _settled_by_another(entry, intent):
        return Follows.DUPLICATE, ""
    return Follows.TIE if status == Status.CONFIRMED else Follows.CONFIRM, _against_settling(entry, intent)


def _against_settling(entry: LedgerEntry, intent: Intent) -> str:
    """Why this entry can't be what settles it."""
    if intent.status in (Status.HELD, Status.RECORDED, Status.CANCELLED):
        return "It was not sent, so this entry can't be what it did."
    if entry.state == EntryState.PENDING:
        return "The entry is still pending: it settles nothing before it is final."
    if intent.status == Status.CONFIRMED and not _fits(entry, intent):
        return "It was settled with another amount than this entry shows."
    return "It is being sent at this moment: wait for its answer." if intent.lease_until is not None else ""


def against_duplicate(entry: LedgerEntry, intent: Intent) -> str:
    """Why this entry can't be called a duplicate of this intent; "" when it can."""
    if entry.role != EntryRole.EFFECT:
        return "What takes something back is no duplicate."
    if intent.status != Status.CONFIRMED:
        return "Only what is confirmed can have a duplicate."
    return _another_ones(entry, intent)


def _another_ones(entry: LedgerEntry, intent: Intent) -> str:
    if entry.key and entry.key != intent.idempotency_key and find(entry, entry.key) is not None:
        return "The entry bears the key of another intent."
    return ""


def _settled_by_another(entry: LedgerEntry, intent: Intent) -> bool:
    ties = Match.objects.filter(intent=intent, role=MatchRole.SETTLES, released_at__isnull=True)
    return ties.exists() or bool(intent.external_id and intent.external_id != entry.entry_id)


def _fits(entry: LedgerEntry, intent: Intent) -> bool:
    settled = (intent.settled_amount_minor, intent.settled_currency)
    wanted = (intent.amount_minor, intent.currency) if settled[0] is None else settled
    if wanted[0] is None:
        return True
    shown = [(entry.amount_minor, entry.currency)]
    if entry.settled_amount_minor is not None:
        shown.append((entry.settled_amount_minor, entry.settled_currency or entry.currency))
    return (wanted[0], wanted[1] or intent.currency) in shown


def needs_two(entry: LedgerEntry, intent: Intent | None) -> bool:
    """Above the second limit of the named intent's kind two people agree; that something is not ours, one says."""
    if intent is None:
        return False
    rules = policy.read(intent.policy.text)
    return policy.needs_two_people(rules, intent.amount_minor, intent.currency) or policy.needs_two_people(
        rules, entry.amount_minor, entry.currency
    )


def blocked(review: Review) -> bool:
    """Whether a case can't be decided here: it is closed, or about an intent."""
    return review.closed_at is not None or review.purpose != Purpose.ENTRY or review.entry_id is None


# Deciding


def votes(review: Review) -> QuerySet[Decision]:
    """First votes that still count: nobody seconded, undid or voided them, and nothing is pending."""
    return review.decisions.filter(choice__in=CHOICES, intent=None, followed_by=None, takes_effect_at=None)


def waiting() -> QuerySet[Decision]:
    """Decisions about entries whose undo window has to end before they take effect."""
    return Decision.objects.filter(choice__in=CHOICES, intent=None, followed_by=None, takes_effect_at__isnull=False)


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
    ballot = _Ballot(choice, reason, note.strip(), seen, named.strip())
    review = Review.objects.filter(pk=review_id).first()
    if review is None:
        raise NotFound()
    if review.closed_at is not None:
        raise claiming.closed(review)
    _refuse_incomplete(review, ballot)
    _refuse_second_vote(votes(review).first(), person)
    claiming.claim(review_id, person=person)
    try:
        with transaction.atomic():
            return _decide(review_id, ballot, person)
    except IntegrityError as raced:
        # A check tied the entry, or settled the intent, at the same moment.
        raise SeenIsStale() from raced


def _refuse_incomplete(review: Review, ballot: _Ballot) -> None:
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


def _refuse_second_vote(first: Decision | None, person: User) -> None:
    if first is not None and first.person_id == person.pk:
        raise BadDecision("You gave the first vote; a different person has to give the second.")


def _decide(review_id: int, ballot: _Ballot, person: User) -> Decided:
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
        Review.objects.filter(pk=review.pk).update(owner=None, lease_until=None)
        return Decided(row, "second_person")
    if settings.LANDED_UNDO_S > 0:
        return Decided(row, "undo_window")
    _carry_out(row, entry, intent, now)
    return Decided(row, "effective")


def _lock_named(entry: LedgerEntry, ballot: _Ballot) -> Intent | None:
    """The family before the row, as everywhere: a dispute holds the family while it waits for its rows."""
    if ballot.choice is Choice.NOT_OURS:
        return None
    found = find(entry, ballot.named)
    if found is None:
        raise BadDecision("No intent of this downstream has that id or idempotency key.")
    return _lock(found.pk)


def _lock(intent_id: UUID) -> Intent:
    subjects.lock_family(*Intent.objects.values_list("kind_id", "family").get(pk=intent_id))
    return for_change(Intent).select_related("kind", "policy", "downstream").get(pk=intent_id)


def _refuse_changed(
    review: Review, entry: LedgerEntry, intent: Intent | None, ballot: _Ballot, person: User, now: datetime
) -> None:
    if review.closed_at is not None:
        raise claiming.closed(review)
    if not claiming.holds(review, person, now):
        raise claiming.why_not(review.pk)
    if waiting().filter(review=review).exists():
        raise BadDecision("This case is decided already; the decision takes effect in a moment.")
    if seen(entry, intent) != ballot.seen:
        raise SeenIsStale()
    if why := _against(entry, intent, ballot.choice):
        raise BadDecision(why)


def _against(entry: LedgerEntry, intent: Intent | None, choice: Choice) -> str:
    if intent is None:
        return ""
    return plan(entry, intent)[1] if choice is Choice.LINK else against_duplicate(entry, intent)


def _vote(
    review: Review, entry: LedgerEntry, intent: Intent | None, ballot: _Ballot, person: User, now: datetime
) -> Decision | None:
    """The first vote that this ballot is the second of. One for something else, or on other facts, is voided."""
    first = votes(review).first()
    if first is None:
        return None
    _refuse_second_vote(first, person)
    same = (first.choice, first.linked_id, first.seen_version, first.seen_digest) == (
        ballot.choice,
        intent.pk if intent else None,
        ballot.seen.version,
        ballot.seen.digest,
    )
    if same:
        return first
    _about(first, Choice.VOID, person, now)
    return None


def _row(
    review: Review,
    entry: LedgerEntry,
    intent: Intent | None,
    ballot: _Ballot,
    person: User,
    now: datetime,
    *,
    about: Decision | None,
) -> Decision:
    note = _keep(None, ballot.note, EvidenceKind.NOTE, person.pk, now) if ballot.note else None
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


def _keep(
    intent_id: UUID | None, content: str | dict[str, Any], kind: EvidenceKind, person_id: int | None, now: datetime
) -> Evidence:
    return evidence.store(intent_id=intent_id, kind=kind, source=f"person:{person_id}", content=content, now=now)


def _about(earlier: Decision, choice: Choice, person: User | None, now: datetime) -> Decision:
    row = Decision(
        review_id=earlier.review_id,
        entry_id=earlier.entry_id,
        linked_id=earlier.linked_id,
        person=person,
        choice=choice,
        about=earlier,
        seen_version=earlier.seen_version,
        payload_digest=earlier.payload_digest,
    )
    return history.append(row, owner=Review, pk=earlier.review_id, at=now)


# Taking effect


def due(now: datetime, *, limit: int) -> list[int]:
    found = waiting().filter(takes_effect_at__lte=now).order_by("takes_effect_at", "pk")
    return list(found.values_list("pk", flat=True)[:limit])


def undo(decision_id: int, *, person: User) -> Decision:
    """Takes one's own decision back while its undo window is open."""
    with transaction.atomic():
        mine = waiting().filter(pk=decision_id, person=person)
        review = for_change(Review).filter(decisions__in=mine).first()
        # Looked at again under the lock: the clock may have carried it out in between.
        found = mine.first() if review is not None else None
        if found is None:
            raise BadDecision("It has taken effect already, or it is not yours to undo.")
        return _about(found, Choice.UNDO, person, times.now())


def take_effect(decision_id: int) -> bool:
    """Carries out a decision whose undo window is over; voids it when the facts have moved on meanwhile.

    False: nothing was done, because somebody did it already or it was undone.
    """
    with transaction.atomic():
        row = Decision.objects.get(pk=decision_id)
        intent = _lock(row.linked_id) if row.linked_id is not None else None
        review = for_change(Review).get(pk=row.review_id)
        assert review.entry_id is not None
        entry = for_change(LedgerEntry).get(pk=review.entry_id)
        now = times.now()
        if not waiting().filter(pk=row.pk, takes_effect_at__lte=now).exists():
            return False
        stale = seen(entry, intent) != Seen(row.seen_version, row.seen_digest)
        if review.closed_at is not None or stale or _against(entry, intent, Choice(row.choice)):
            _about(row, Choice.VOID, None, now)
            return True
        try:
            with transaction.atomic():
                _carry_out(row, entry, intent, now)
        except (LandedError, IntegrityError):
            _about(row, Choice.VOID, None, now)
    return True


def _carry_out(row: Decision, entry: LedgerEntry, intent: Intent | None, now: datetime) -> None:
    # Judged before, in another state.
    Match.objects.filter(entry=entry, released_at__isnull=True).update(
        released_at=now, released_by=f"person:{row.person_id}"
    )
    if intent is None:
        _tie(row, entry, None, MatchRole.NOT_OURS, now)
    else:
        follows = plan(entry, intent)[0] if row.choice == Choice.LINK else Follows.DUPLICATE
        assert follows is not None
        _EFFECTS[follows](row, entry, intent, now)
    _about(row, Choice.EFFECT, row.person, now)
    closed = Review.objects.filter(pk=row.review_id, closed_at__isnull=True)
    closed.update(closed_at=now, closed_how=ClosedHow.DECISION, lease_until=None)


def _tie(row: Decision, entry: LedgerEntry, intent: Intent | None, role: MatchRole, now: datetime) -> None:
    Match.objects.create(
        entry=entry,
        intent=intent,
        role=role,
        entry_state=entry.state,
        amount_minor=entry.amount_minor,
        currency=entry.currency,
        by=f"person:{row.person_id}",
        at=now,
    )


def _grounds(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> Evidence:
    """What the intent's own history keeps of the decision. The note stays with the case."""
    said = {
        "case": row.review_id,
        "decision": row.pk,
        "choice": str(row.choice),
        "reason": str(row.reason),
        "entry": entry.entry_id,
        "amount": money.describe(entry.amount_minor, entry.currency),
    }
    return _keep(intent.pk, said, EvidenceKind.OUTSIDE, row.person_id, now)


def _confirm(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    who, seen_as = f"person:{row.person_id}", _grounds(row, entry, intent, now)
    if intent.status == Status.SUBMITTED:
        intent = transitions.apply(
            intent.pk,
            expected=Status.SUBMITTED,
            to=Status.UNKNOWN,
            actor=Actor.REVIEWER,
            actor_id=who,
            reason=Reason.IN_REVIEW,
            now=now,
            fence=intent.fence,
        )
    effects.tie(intent, row, now)
    moved = transitions.apply(
        intent.pk,
        expected=Status.UNKNOWN,
        to=Status.CONFIRMED,
        actor=Actor.REVIEWER,
        actor_id=who,
        reason=Reason.DECIDED,
        evidence=[seen_as],
        version=intent.version,
        now=now,
        external_id=entry.entry_id,
        settled_amount_minor=entry.amount_minor if entry.settled_amount_minor is None else entry.settled_amount_minor,
        settled_currency=entry.settled_currency or entry.currency,
        settled_by=SettledBy.DECISION,
    )
    differences.settle(moved, row, now=now)
    # Its own case has nothing left to ask.
    opening.close(moved, ClosedHow.DECISION, now=now)


def _write_down(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    kept = _grounds(row, entry, intent, now)
    history.observe(intent.pk, Observed.TIED, by=f"person:{row.person_id}", evidence=[kept], at=now)


def _settle(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    effects.tie(intent, row, now)
    _write_down(row, entry, intent, now)


def _duplicate(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    _tie(row, entry, intent, MatchRole.DUPLICATE, now)
    _list(row, entry, intent, LeftToDo.RECOVER, now)
    _write_down(row, entry, intent, now)


def _taken_back(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    _tie(row, entry, intent, MatchRole.KNOWN, now)
    _list(row, entry, intent, LeftToDo.SEND, now)
    _write_down(row, entry, intent, now)


def _dispute(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    _tie(row, entry, intent, MatchRole.KNOWN, now)
    _write_down(row, entry, intent, now)
    review = opening.dispute(intent, now=now)
    shows = money.describe(entry.amount_minor, entry.currency)
    review.grounds = f"This intent is settled as failed. A person says that a ledger entry of {shows} is its own."
    review.save(update_fields=["grounds"])


def _list(row: Decision, entry: LedgerEntry, intent: Intent, what: LeftToDo, now: datetime) -> None:
    """Once: the same about the same entry is the same thing to do."""
    if Difference.objects.filter(intent=intent, entry=entry, what=what).exists():
        return
    Difference.objects.create(
        intent=intent,
        entry=entry,
        decision=row,
        what=what,
        amount_minor=entry.amount_minor or None,
        currency=entry.currency,
        opened_at=now,
    )


_EFFECTS = {
    Follows.CONFIRM: _confirm,
    Follows.TIE: _settle,
    Follows.DUPLICATE: _duplicate,
    Follows.DISPUTE: _dispute,
    Follows.TAKEN_BACK: _taken_back,
}
