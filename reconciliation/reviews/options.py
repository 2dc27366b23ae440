"""What can be decided in a case, by whom, and what follows. The pages show it; deciding enforces it."""

from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User

from actions import policy, stops, times
from actions.models import Intent
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Choice, Purpose, ReasonCode, Review, Verdict
from reconciliation.reviews import effects, grounds, people


@dataclass(frozen=True)
class Option:
    """One button: its words, what follows, and why it can't be pressed ("" when it can)."""

    choice: Choice
    label: str
    follows: str
    recommended: bool = False
    blocked: str = ""
    until: datetime | None = None


_FOLLOWS = {
    Choice.CONFIRM: "The agent is told that it happened; the order is free for a new intent.",
    Choice.FAIL: "The agent is told that it did not happen and may propose it again; the order is free.",
    Choice.SEND_AGAIN: "The downstream answers what it answered then, or does now what it did not do; never both.",
    Choice.APPROVE: "It is sent once, with its own key.",
    Choice.REJECT: "Nothing is sent, and the agent is told not to propose it again.",
    Choice.UPHOLD: "The intent stays as it is, and the order is free again.",
}


# What a look under the intent's own key has found.
_SHOWN = (Verdict.MATCH, Verdict.PENDING, Verdict.PARTIAL, Verdict.MISMATCH, Verdict.DUPLICATE)


def choices_for(review: Review, intent: Intent) -> list[Choice]:
    """By the case's purpose and the intent's status; empty when nothing can be decided here."""
    if review.closed_at is not None:
        return []
    if review.purpose == Purpose.APPROVAL and intent.status == Status.HELD:
        return [Choice.APPROVE, Choice.REJECT]
    if review.purpose == Purpose.OUTCOME and intent.status == Status.UNKNOWN:
        again = [Choice.SEND_AGAIN] if effects.sent_again_until(intent) is not None else []
        return [Choice.CONFIRM, Choice.FAIL, *again]
    if review.purpose == Purpose.OUTCOME and intent.settled and (intent.disputed or _asked_for(review)):
        return [Choice.UPHOLD]
    return []


def _asked_for(review: Review) -> bool:
    """Whether a person opened it by hand: then somebody has to be able to close it."""
    return any(reason.code == ReasonCode.REQUESTED for reason in review.reasons.all())


def options(review: Review, *, person: User) -> list[Option]:
    """The buttons of a case for this person."""
    intent = review.intent
    if intent is None or not people.may_decide(person):
        return []
    return [
        Option(
            choice=choice,
            label=choice.label,
            follows=_follows(choice, intent),
            recommended=choice == review.recommendation,
            blocked=blocked(review, intent, choice, person=person, now=times.now()),
            until=effects.sent_again_until(intent) if choice is Choice.SEND_AGAIN else None,
        )
        for choice in choices_for(review, intent)
    ]


def _follows(choice: Choice, intent: Intent) -> str:
    if choice is Choice.UPHOLD and not intent.disputed:
        return "The intent stays as it is, and this case is closed."
    return _FOLLOWS.get(choice, "")


def blocked(review: Review, intent: Intent, choice: Choice, *, person: User, now: datetime) -> str:
    """Why this person may not choose it now; "" when they may."""
    if choice is Choice.APPROVE:
        return grounds.for_stops(stops.of_intent(intent))
    if choice is Choice.SEND_AGAIN:
        if review.verdict in _SHOWN:
            return "The ledger shows it already: sending it again would tell nothing more."
        return effects.against_sending_again(intent, now)
    if choice is not Choice.FAIL or people.may_supervise(person) or absence_counts(review, intent, now):
        return ""
    if review.verdict in (Verdict.ABSENT, Verdict.TOO_EARLY):
        return "That the ledger does not show it proves nothing yet: a supervisor has to decide this."
    return "The ledger does not say that it did not happen: a supervisor has to decide this."


def absence_counts(review: Review, intent: Intent, now: datetime) -> bool:
    """Whether a person may take the ledger's silence for a no: a conclusive book, late enough, nothing in it.

    An entry that says itself that it was not carried out counts as well.
    """
    if review.verdict == Verdict.MATCH:
        newest = intent.checks.order_by("-position").first()
        return newest is not None and bool(newest.grounds_data["entry_failed"])
    if review.verdict != Verdict.ABSENT:
        return False
    rules = policy.read(intent.policy.text)
    last = checks.last_possible_send(intent.attempts.all(), otherwise=intent.created_at)
    return rules.absence_conclusive and (now - last).total_seconds() > rules.lag_s


def needs_two(
    intent: Intent, choice: Choice, settled_amount_minor: int | None = None, settled_currency: str = ""
) -> bool:
    """Above the second limit two different people agree, whatever they decide but that nothing is sent.

    What was intended counts, and what is said to have been settled, each by the limits of its own currency.
    """
    if choice is Choice.REJECT:
        return False
    rules = policy.read(intent.policy.text)
    settled = (settled_amount_minor, settled_currency or intent.currency)
    return any(
        policy.needs_two_people(rules, *amount) for amount in ((intent.amount_minor, intent.currency), settled)
    )
