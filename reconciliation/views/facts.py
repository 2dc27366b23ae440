"""What is known about a case or an intent, fetched once for its page. A fixed number of queries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from django.contrib.auth.models import User
from django.db.models import Case, Count, F, Q, Sum, When

from actions import policy, subjects
from actions.models import Attempt, Intent
from reconciliation.models import Check, Choice, ClosedHow, Decision, LedgerEntry, Purpose, Review
from reconciliation.reviews import claiming, pending
from reconciliation.views import comparing, timeline
from reconciliation.views.comparing import Candidate
from reconciliation.views.doings import Event
from reconciliation.views.raw import Piece

MOST_RELATIVES = 10
_PART = 10**6

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
class Holding:
    """Who has the case: by a lease, `until` when; or for good, as its owner."""

    state: Literal["mine", "other", "free", "closed"]
    holder: User | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Total:
    """What the other intents of a family come to: `2 refunds confirmed, € 70.00`."""

    number: int
    kind: str
    status: str
    disputed: bool
    amount_minor: int | None
    currency: str


@dataclass(frozen=True)
class Known:
    """Everything about one intent that a page shows."""

    candidates: list[Candidate]
    others: list[Candidate]
    tables: list[comparing.Table]
    other_tables: list[comparing.Table]
    agreement: str
    attempts: list[Attempt]
    newest: Check | None
    newest_details: list[str]
    can_look_up: bool
    events: list[Event]
    rest: list[Piece]
    relatives: list[Intent]
    totals: list[Total]


def about(intent: Intent) -> Known:
    attempts = list(Attempt.objects.filter(intent=intent).order_by("number"))
    checks = list(Check.objects.filter(intent=intent).order_by("position"))
    entries = comparing.entries_for(intent)
    newest = checks[-1] if checks else None
    eligible = set(newest.grounds_data.get("candidates", [])) if newest else set()
    found = [comparing.candidate(intent, entry, eligible=entry.pk in eligible) for entry in entries]
    candidates = [one for one in found if one.eligible]
    others = [one for one in found if not one.eligible]
    told = timeline.of_intent(intent, attempts=attempts, checks=checks, entries=entries)
    return Known(
        candidates=candidates,
        others=others,
        tables=comparing.tables(candidates),
        other_tables=comparing.tables(others),
        agreement=comparing.agreement(candidates[0]) if len(candidates) == 1 else "",
        attempts=attempts,
        newest=newest,
        newest_details=timeline.check_details(newest, {}) if newest else [],
        can_look_up=policy.can_look_now(policy.read(intent.policy.text)) and intent.first_maybe_sent_at is not None,
        events=told.events,
        rest=told.rest,
        relatives=relatives(intent),
        totals=totals(intent),
    )


def relatives(intent: Intent) -> list[Intent]:
    """The newest other intents of the subject's family."""
    found = Intent.objects.filter(family=intent.family).exclude(pk=intent.pk).select_related("kind", "agent")
    return list(found.order_by("-created_at")[:MOST_RELATIVES])


def totals(intent: Intent) -> list[Total]:
    """What all other intents of the family come to, by kind, status and currency: as settled, else as intended."""
    others = Intent.objects.filter(family=intent.family).exclude(pk=intent.pk).order_by()
    moved = Case(When(settled_amount_minor=None, then=F("amount_minor")), default=F("settled_amount_minor"))
    code = Case(When(settled_currency="", then=F("currency")), default=F("settled_currency"))
    groups = others.annotate(moved=moved, code=code).values("kind__title", "status", "disputed", "code")
    # In two parts, each far from what a database's sum can hold.
    parts = {"parts": Sum(F("moved") / _PART), "left": Sum(F("moved") % _PART)}
    rows = groups.annotate(number=Count("pk"), **parts).order_by("kind__title", "status", "code")
    return [
        Total(row["number"], row["kind__title"], row["status"], row["disputed"], _whole(row), row["code"])
        for row in rows
    ]


def _whole(row: Mapping[str, Any]) -> int | None:
    return None if row["parts"] is None else int(row["parts"]) * _PART + int(row["left"])


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
        theirs = review.owner_id is not None and review.owner_id != person.pk
        return Holding("other", review.owner) if theirs else Holding("free")
    mine = claiming.holds(review, person, now)
    return Holding("mine" if mine else "other", review.holder, review.lease_until)


def vote_of(review: Review) -> Decision | None:
    """The first of two votes, while it waits for the second."""
    return pending.votes(review).select_related("person", "note", "linked__kind").first()


def asked_again(review: Review) -> Decision | None:
    """What ended the votes of a case last, so that both are asked for anew: a row with `person` and `about`, which
    is the first vote itself or the second. For a case that nobody has voted in since."""
    ended = review.decisions.filter(choice__in=[Choice.UNDO, Choice.VOID], about__choice__in=pending.CHOICES)
    of_two = ended.filter(Q(about__takes_effect_at=None) | Q(about__about__isnull=False))
    return of_two.select_related("person", "about").order_by("-pk").first()


def pending_of(review: Review) -> Decision | None:
    """A decision whose undo window is open."""
    waiting = pending.waiting(pending.CHOICES).filter(review=review)
    return waiting.select_related("person", "note", "linked__kind").first()


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
