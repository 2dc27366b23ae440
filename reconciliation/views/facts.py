"""What is known about a case or an intent, fetched once for its page. A fixed number of queries."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from django.contrib.auth.models import User

from actions import policy, subjects
from actions.models import Evidence, EvidenceKind, Intent
from reconciliation.models import Check, Choice, ClosedHow, Decision, LedgerEntry, Purpose, Review
from reconciliation.reviews import claiming, pending
from reconciliation.views import comparing, timeline
from reconciliation.views.timeline import Event

# What machines said and saw; notes and comments stand in the timeline.
RAW = (
    EvidenceKind.REQUEST,
    EvidenceKind.ANSWER,
    EvidenceKind.PAGE,
    EvidenceKind.REPORT,
    EvidenceKind.WEBHOOK,
    EvidenceKind.OUTSIDE,
)
MOST_EVIDENCE, MOST_RELATIVES = 20, 10

# What a recommendation means, said first.
LIKELY = {
    Choice.CONFIRM.value: "It looks as if it happened.",
    Choice.FAIL.value: "It looks as if it did not happen.",
}
QUESTIONS = {
    Purpose.APPROVAL: "May this be sent?",
    Purpose.OUTCOME: "We can't tell.",
    Purpose.ENTRY: "No intent explains this entry.",
}
# How a decided case begins.
DECIDED = {
    Choice.CONFIRM.value: "It happened.",
    Choice.FAIL.value: "It did not happen.",
    Choice.APPROVE.value: "Approved: it may be sent.",
    Choice.REJECT.value: "Rejected: it is not sent.",
    Choice.UPHOLD.value: "It stays as it is.",
    Choice.CORRECT.value: "It was the other way.",
    Choice.LINK.value: "It belongs to an intent.",
    Choice.DUPLICATE.value: "It is a duplicate.",
    Choice.NOT_OURS.value: "It is not ours.",
}


@dataclass(frozen=True)
class Candidate:
    """A ledger entry beside the intent. `eligible`: the newest look says that it may be the intent's own."""

    entry: LedgerEntry
    rows: list[comparing.Row]
    eligible: bool
    differs: str


@dataclass(frozen=True)
class Holding:
    """Who has the case. `until` is set while somebody has it."""

    state: Literal["mine", "other", "free", "closed"]
    holder: User | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Known:
    """Everything about one intent that a page shows."""

    candidates: list[Candidate]
    others: list[Candidate]
    newest: Check | None
    newest_details: list[str]
    can_look_up: bool
    events: list[Event]
    evidence: list[Evidence]
    evidence_left_out: bool
    relatives: list[Intent]


def about(intent: Intent) -> Known:
    newest = intent.checks.order_by("-position").first()
    found = [_candidate(intent, entry, newest) for entry in comparing.entries_for(intent)]
    evidence = list(intent.evidence.filter(kind__in=RAW).order_by("-pk")[: MOST_EVIDENCE + 1])
    return Known(
        candidates=[c for c in found if c.eligible],
        others=[c for c in found if not c.eligible],
        newest=newest,
        newest_details=timeline.check_details(newest) if newest else [],
        can_look_up=policy.can_look_now(policy.read(intent.policy.text)) and intent.first_maybe_sent_at is not None,
        events=timeline.of_intent(intent),
        evidence=evidence[:MOST_EVIDENCE],
        evidence_left_out=len(evidence) > MOST_EVIDENCE,
        relatives=relatives(intent),
    )


def _candidate(intent: Intent, entry: LedgerEntry, newest: Check | None) -> Candidate:
    rows = comparing.compare(intent, entry)
    eligible = newest is not None and entry.pk in newest.grounds_data.get("candidates", [])
    return Candidate(entry, rows, eligible, ", ".join(row.label.lower() for row in rows if row.same is False))


def relatives(intent: Intent) -> list[Intent]:
    """The newest other intents of the subject's family."""
    found = Intent.objects.filter(family=intent.family).exclude(pk=intent.pk).select_related("kind", "agent")
    return list(found.order_by("-created_at")[:MOST_RELATIVES])


def blockers(review: Review) -> list[Intent]:
    """What keeps a held intent from being sent, unless a person waives it."""
    intent = review.intent
    if intent is None or review.purpose != Purpose.APPROVAL or review.closed_at is not None or intent.guard_key:
        return []
    return subjects.blocking(intent.kind_id, intent.subject, besides=intent.pk)


def holding(review: Review, person: User, now: datetime) -> Holding:
    if review.closed_at is not None:
        return Holding("closed")
    if review.holder is None or review.lease_until is None or review.lease_until < now:
        return Holding("free")
    mine = claiming.holds(review, person, now)
    return Holding("mine" if mine else "other", review.holder, review.lease_until)


def vote_of(review: Review) -> Decision | None:
    """The first of two votes, while it waits for the second."""
    return pending.votes(review).select_related("person", "note").first()


def pending_of(review: Review) -> Decision | None:
    """A decision whose undo window is open."""
    return pending.waiting().filter(review=review).select_related("person", "note").first()


def headline(review: Review, last: Decision | None) -> tuple[str, str]:
    """The answer in words, and what it rests on."""
    if review.closed_at is not None:
        return _closed_headline(review, last), ""
    answer, dot, rest = review.grounds.partition(". ")
    likely = LIKELY.get(review.recommendation)
    if likely and not review.grounds.startswith(likely):
        return likely, review.grounds
    if not review.grounds or review.purpose == Purpose.APPROVAL:
        return QUESTIONS[Purpose(review.purpose)], review.grounds
    return (f"{answer}." if dot else answer), rest


def _closed_headline(review: Review, last: Decision | None) -> str:
    if review.closed_how == ClosedHow.DECISION and last is not None:
        return DECIDED.get(last.choice, last.get_choice_display())
    return {
        ClosedHow.DECISION: "A person decided it.",
        ClosedHow.EVIDENCE: "Evidence settled it; nobody has to decide.",
        ClosedHow.WITHDRAWN: "It was withdrawn, or its time was over, before it was sent.",
    }[ClosedHow(review.closed_how)]


def decisions_of(review: Review) -> list[Decision]:
    """What people decided in a case, newest first, without the rows that speak of an earlier one."""
    votes = review.decisions.exclude(choice__in=[Choice.UNDO, Choice.VOID, Choice.EFFECT])
    return list(votes.select_related("person", "note", "entry", "linked__kind").order_by("-pk"))


def only(candidates: Sequence[Candidate]) -> LedgerEntry | None:
    """The one entry that can settle it; None when there is none, or a choice."""
    return candidates[0].entry if len(candidates) == 1 else None
