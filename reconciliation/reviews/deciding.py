"""A person decides a case.

The facts are looked up again at that moment, outside any transaction; then, under the intent's lock, everything
must still be as the person saw it. A decision is a row; what undoes, voids or carries it out is another row.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal, Protocol

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from actions import evidence, history, money, policy, times
from actions.errors import BadDecision, NotFound, SeenIsStale
from actions.locking import for_change
from actions.models import Evidence, EvidenceKind, Intent
from reconciliation import checks, entries
from reconciliation.models import (
    Check,
    Choice,
    Decision,
    DecisionReason,
    LedgerEntry,
    Review,
    Verdict,
)
from reconciliation.reviews import claiming, options, pending, people
from reconciliation.reviews.differences import MAX_NOTE
from reconciliation.reviews.voiding import ON_FACTS

State = Literal["effective", "undo_window", "second_person"]
# Within so long the same press again is a double click, or a reload.
_AGAIN = timedelta(seconds=10)


@dataclass(frozen=True)
class Seen:
    """The facts that were on the person's screen."""

    version: int
    verdict: str
    digest: str


@dataclass(frozen=True)
class Decided:
    decision: Decision
    state: State


@dataclass(frozen=True)
class _Ballot:
    """What a person chose, before it is a row."""

    choice: Choice
    reason: DecisionReason
    note: str
    outside: str
    seen: Seen
    entry_id: int | None
    settled_amount_minor: int | None
    settled_currency: str
    waive_guard: bool
    # Of the case before it was claimed; None: it may be another by now, as long as the facts are those seen.
    version: int | None

    def same_as(self, vote: Decision, settled: tuple[int | None, str], payload_digest: str) -> bool:
        """Whether it is the same decision about the same thing on the same facts as an earlier vote."""
        return (
            self.choice == vote.choice
            and self.entry_id == vote.entry_id
            and settled == (vote.settled_amount_minor, vote.settled_currency)
            and self.seen.version == vote.seen_version
            and self.seen.digest == vote.seen_digest
            and self.waive_guard == vote.guard_waived
            and payload_digest == vote.payload_digest
        )


def seen(review: Review) -> Seen:
    """What a page that shows this review now has to send back with a decision."""
    version = review.intent.version if review.intent is not None else review.version
    return Seen(version=version, verdict=review.verdict, digest=review.facts_digest)


def decide(
    review_id: int,
    *,
    person: User,
    choice: Choice,
    reason: DecisionReason,
    note: str,
    seen: Seen,
    entry_id: int | None = None,
    settled_amount_minor: int | None = None,
    settled_currency: str = "",
    outside: str = "",
    waive_guard: bool = False,
    version: int | None = None,
) -> Decided:
    """Decides a case, or gives the first of two votes. Network: call it outside any transaction.

    `outside`: where the person has it from (source and reference), when the ledger can't be looked into.
    `settled_amount_minor`: what was really settled, in minor units; the entry's, or the intended one, by default.
    `version`: that of the case as it was looked at, if it has to be that still: no vote given, nothing raised since.

    Raises:
        PersonNotAllowed, NotFound, ReviewClosed, ReviewHeld, BadDecision (with what is missing), SeenIsStale (the
        facts have changed; they are stored and nothing is decided).
    """
    people.must(people.may_decide(person))
    ballot = _Ballot(
        choice,
        reason,
        note.strip(),
        outside.strip(),
        seen,
        entry_id,
        settled_amount_minor,
        settled_currency,
        waive_guard,
        version,
    )
    review = _open(review_id)
    _refuse_incomplete(ballot)
    pending.refuse_decided(review)
    refuse_second_vote(pending.votes(review).first(), person)
    claiming.claim(review_id, person=person)
    looks = choice in (*pending.OUTCOMES, Choice.SEND_AGAIN)
    fresh = _look_now(review, ballot, person) if looks else None
    try:
        with transaction.atomic():
            return _decide(review_id, ballot, person, fresh)
    except IntegrityError as raced:
        # A look tied the entry, or settled the intent, at the same moment.
        raise SeenIsStale() from raced


class Saw(Protocol):
    """What a decision says was seen, of an intent or of an entry."""

    @property
    def version(self) -> int: ...
    @property
    def digest(self) -> str: ...


def made_already(review_id: int, *, person: User, choice: Choice, seen: Saw) -> Decided | None:
    """The very decision, made by the same person a moment ago: a second press of the button is not a second decision.

    None when there is none that still stands. Gives the case back where it waits for somebody else.
    """
    mine = Decision.objects.filter(review=review_id, person=person, choice=choice, at__gt=times.now() - _AGAIN)
    row = mine.filter(seen_version=seen.version, seen_digest=seen.digest).order_by("-pk").first()
    if row is None:
        return None
    became = Decision.objects.filter(about=row).values_list("choice", flat=True).first()
    if became in (Choice.UNDO, Choice.VOID):
        return None
    if row.takes_effect_at is None:
        # The second press may have claimed it anew.
        claiming.stand_back(review_id, person=person)
        return Decided(row, "second_person")
    return Decided(row, "effective" if became == Choice.EFFECT else "undo_window")


def _open(review_id: int) -> Review:
    review = (
        Review.objects.select_related("intent__policy", "intent__kind", "intent__downstream")
        .filter(pk=review_id)
        .first()
    )
    if review is None:
        raise NotFound()
    if review.closed_at is not None:
        raise claiming.closed(review)
    return review


def _refuse_incomplete(ballot: _Ballot) -> None:
    if ballot.choice not in pending.VOTES:
        raise BadDecision("This can't be decided here.")
    if len(ballot.note) > MAX_NOTE or len(ballot.outside) > MAX_NOTE:
        raise BadDecision(f"The note is longer than {MAX_NOTE} characters.")
    if ballot.reason == DecisionReason.OTHER and not ballot.note:
        raise BadDecision("The reason “other” needs a note.")


def _look_now(review: Review, ballot: _Ballot, person: User) -> Check | None:
    """A fresh look. None: this downstream has no ledger that we could look into."""
    assert review.intent is not None
    if not policy.can_look_now(policy.read(review.intent.policy.text)):
        _need_outside(ballot)
        return None
    fresh = checks.check_by_person(review.intent.pk, person=person)
    if fresh.verdict == Verdict.UNAVAILABLE:
        _need_outside(ballot)
    elif _disagrees((fresh.facts_digest, fresh.verdict), ballot.seen):
        raise SeenIsStale(check=fresh)
    return fresh


def _need_outside(ballot: _Ballot) -> None:
    # Sending the same key again says nothing of what happened, so it needs no evidence of that.
    if not ballot.outside and ballot.choice is not Choice.SEND_AGAIN:
        raise BadDecision(
            "The ledger can't be looked into now. To decide all the same, say where you have it from: "
            "source and reference."
        )


def _disagrees(known: tuple[str, str], saw: Seen) -> bool:
    """Other entries (their digest, and the verdict) than the person saw, or another meaning of the same. Nothing
    found is nothing found, early or late; and that the books can't be read says nothing."""
    digest, verdict = known
    quiet = {Verdict.ABSENT, Verdict.TOO_EARLY}
    if digest != saw.digest:
        return True
    if Verdict.UNAVAILABLE in (verdict, saw.verdict):
        return False
    return verdict != saw.verdict and not {verdict, saw.verdict} <= quiet


def _decide(review_id: int, ballot: _Ballot, person: User, fresh: Check | None) -> Decided:
    intent_id = Review.objects.values_list("intent_id", flat=True).get(pk=review_id)
    pending.lock_family_first(intent_id, ballot.choice)
    intent = for_change(Intent).select_related("policy", "kind", "downstream").get(pk=intent_id)
    review = for_change(Review).get(pk=review_id)
    now = times.now()
    _refuse_changed(review, intent, ballot, person, fresh, now)
    note, kept = _keep_words(intent, ballot, person, now)
    vote = _vote(review, intent, ballot, person)
    row = _row(review, intent, ballot, person, note, kept, fresh, about=vote)
    needs_second = (
        options.needs_two(intent, ballot.choice, row.settled_amount_minor, row.settled_currency) and vote is None
    )
    if not needs_second:
        row.takes_effect_at = now + timedelta(seconds=settings.LANDED_UNDO_S)
    history.append(row, owner=Intent, pk=intent.pk, at=now)
    if needs_second:
        # The case waits for somebody else; whoever voted gives it back.
        claiming.stand_back(review.pk, person=person)
        return Decided(row, "second_person")
    if settings.LANDED_UNDO_S > 0:
        return Decided(row, "undo_window")
    pending.carry_out(row, intent, now)
    return Decided(row, "effective")


def _refuse_changed(
    review: Review, intent: Intent, ballot: _Ballot, person: User, fresh: Check | None, now: datetime
) -> None:
    if review.closed_at is not None:
        raise claiming.closed(review)
    pending.refuse_decided(review)
    if not claiming.holds(review, person, now):
        raise claiming.why_not(review.pk)
    # Claiming it has counted it on by one.
    moved = ballot.version is not None and review.version != ballot.version + 1
    if moved or intent.version != ballot.seen.version:
        raise SeenIsStale()
    if fresh is not None and pending.facts_moved(
        intent, ballot.choice, since=fresh.position, digest=fresh.facts_digest
    ):
        raise SeenIsStale()
    # What the case knows by now, whoever looked and whether or not we could look at this moment.
    if ballot.choice in ON_FACTS and _disagrees((review.facts_digest, review.verdict), ballot.seen):
        raise SeenIsStale()
    if ballot.choice not in options.choices_for(review, intent):
        raise BadDecision("This can't be decided here.")
    if why := options.blocked(review, intent, ballot.choice, person=person, now=now):
        raise BadDecision(why)
    if ballot.choice is Choice.APPROVE and not history.payload_fits(intent):
        raise BadDecision("What is stored is not what was recorded: its payload was changed. It can't be approved.")
    if review.recommendation and review.recommendation != ballot.choice and not ballot.note:
        raise BadDecision("Deciding against the recommendation needs a note that says why.")
    _refuse_wrong_entry(intent, ballot)


def _refuse_wrong_entry(intent: Intent, ballot: _Ballot) -> None:
    if ballot.choice is not Choice.CONFIRM:
        if ballot.entry_id is not None:
            raise BadDecision("Only a confirmation names an entry.")
        return
    newest = intent.checks.order_by("-position").first()
    candidates = newest.grounds_data["candidates"] if newest else []
    if ballot.entry_id is not None and ballot.entry_id not in candidates:
        raise BadDecision("This entry is not among those that the newest look showed.")
    if ballot.entry_id is not None:
        _refuse_another_amount(LedgerEntry.objects.get(pk=ballot.entry_id), intent, ballot)
    if ballot.entry_id is None and candidates and not ballot.outside:
        raise BadDecision("Name the entry that settles it, or say where else you have it from.")
    if ballot.entry_id is None and not candidates and not ballot.outside:
        raise BadDecision("The ledger shows nothing that settles it: say where you have it from.")


def _refuse_another_amount(entry: LedgerEntry, intent: Intent, ballot: _Ballot) -> None:
    """A slip of the pen would have money sent, or taken back, that is where it belongs."""
    stated = (ballot.settled_amount_minor, ballot.settled_currency or intent.currency)
    shown = entries.moved(entry)
    if stated[0] is not None and shown[0] is not None and stated != shown and not ballot.outside:
        raise BadDecision(
            f"The entry shows {money.describe(*shown)}, and you wrote {money.describe(*stated)}. If that is right, "
            "say where you have it from: source and reference."
        )


def _keep_words(
    intent: Intent, ballot: _Ballot, person: User, now: datetime
) -> tuple[Evidence | None, list[Evidence]]:
    """Notes are evidence: erasable, while history keeps their digest."""

    def keep(kind: EvidenceKind, text: str) -> Evidence:
        return evidence.store(intent_id=intent.pk, kind=kind, source=f"person:{person.pk}", content=text, now=now)

    note = keep(EvidenceKind.NOTE, ballot.note) if ballot.note else None
    outside = [keep(EvidenceKind.OUTSIDE, ballot.outside)] if ballot.outside else []
    return note, outside


def _vote(review: Review, intent: Intent, ballot: _Ballot, person: User) -> Decision | None:
    """The first vote that this ballot is the second of. A first vote on other facts, or for something else, is
    voided by a row of its own."""
    first = pending.votes(review).first()
    if first is None:
        return None
    refuse_second_vote(first, person)
    if ballot.same_as(first, _settled(intent, ballot), intent.payload_digest):
        return first
    pending.void(first, person=person)
    return None


def refuse_second_vote(first: Decision | None, person: User) -> None:
    if first is not None and first.person_id == person.pk:
        raise BadDecision("You gave the first vote; a different person has to give the second.")


def _row(
    review: Review,
    intent: Intent,
    ballot: _Ballot,
    person: User,
    note: Evidence | None,
    outside: list[Evidence],
    fresh: Check | None,
    *,
    about: Decision | None,
) -> Decision:
    kept = [*([note] if note else []), *outside, *(evidence.named_in(fresh.evidence) if fresh else [])]
    amount, currency = _settled(intent, ballot)
    return Decision(
        review=review,
        intent=intent,
        person=person,
        choice=ballot.choice,
        reason=ballot.reason,
        about=about,
        recommended=review.recommendation,
        note=note,
        evidence=history.refs(kept),
        entry_id=ballot.entry_id,
        settled_amount_minor=amount,
        settled_currency=currency,
        seen_version=ballot.seen.version,
        seen_verdict=ballot.seen.verdict,
        seen_digest=ballot.seen.digest,
        payload_digest=intent.payload_digest,
        guard_waived=ballot.waive_guard,
    )


def _settled(intent: Intent, ballot: _Ballot) -> tuple[int | None, str]:
    """What was settled: as the person says, else as the entry says, else as it was intended."""
    if ballot.choice is not Choice.CONFIRM or intent.amount_minor is None:
        return None, ""
    if ballot.settled_amount_minor is not None:
        return ballot.settled_amount_minor, ballot.settled_currency or intent.currency
    if ballot.entry_id is not None:
        entry = LedgerEntry.objects.get(pk=ballot.entry_id)
        amount, currency = entries.moved(entry)
        if amount is not None:
            return amount, currency or intent.currency
    return intent.amount_minor, intent.currency
