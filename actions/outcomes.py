"""What follows from an answer. An answer speaks for its own attempt only.

By answers alone an intent becomes failed, or recorded again, only if every attempt is proven refused or not sent.
Workers and callers both come through here, so the rule is written once.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from actions import history, hooks, policy, replays, times, transitions
from actions.canonical import digest
from actions.locking import for_change
from actions.models import (
    HARMLESS,
    Attempt,
    ClosedBy,
    Evidence,
    Executor,
    Intent,
    Observed,
    Replay,
    Result,
    SettledBy,
)
from actions.phases import Phase
from actions.reasons import Reason
from actions.replays import Sending
from actions.statuses import Actor, Status


@dataclass(frozen=True)
class Outcome:
    """What came of one attempt. `reason`: a code of the transport's or connector's closed sets."""

    result: Result
    reason: str
    phase: str = ""
    http_status: int | None = None
    external_id: str = ""
    amount_minor: int | None = None
    currency: str = ""
    # Nothing was sent because a person has to look first: no try that counts.
    person_first: bool = False


def what_follows(own: Result, others: Iterable[str]) -> Status | None:
    """The status that an attempt's result leads to, given what is known of all other attempts ("" while open).

    None: the intent stays where it is (accepted, not finished). Pure.
    """
    if own is Result.CONFIRMED:
        return Status.CONFIRMED
    if own is Result.ACCEPTED:
        return None
    results = [own.value, *others]
    if not all(result in HARMLESS for result in results):
        return Status.UNKNOWN
    return Status.FAILED if Result.REFUSED in results else Status.RECORDED


def proven_unsent(intent: Intent) -> bool:
    """Whether Landed's own transport knows of every attempt that not one byte left.

    A caller's word that it sent nothing, or a downstream's that it processed nothing, is an answer, not this.
    """
    return all(
        attempt.executor == Executor.LANDED
        and attempt.known_result == Result.NOT_SENT
        and bool(attempt.phase)
        and Phase(attempt.phase) < Phase.FIRST_BYTE
        for attempt in intent.attempts.all()
    )


def apply_outcome(
    attempt_id: int,
    outcome: Outcome,
    *,
    actor: Actor,
    actor_id: str,
    closed_by: ClosedBy,
    evidence: Iterable[Evidence] = (),
    now: datetime | None = None,
) -> Intent:
    """Closes the attempt and moves its intent as far as this outcome allows, in one transaction.

    The attempt is closed in any case, even when the intent moved on. After "no answer" (said by the clock or by
    its own sender), its own later answer is added once and still counts while the fence is its own. Whatever moves
    nothing is written into the history all the same. Returns the intent as it is then.
    """
    with transaction.atomic():
        at, kept = now or times.now(), tuple(evidence)
        intent_id = Attempt.objects.values_list("intent_id", flat=True).get(pk=attempt_id)
        intent = for_change(Intent).select_related("policy", "downstream").get(pk=intent_id)
        attempt = for_change(Attempt).get(pk=attempt_id)
        before = attempt.known_result
        news = _close(attempt, outcome, closed_by, at)
        if news and intent.status in (Status.SUBMITTED, Status.UNKNOWN) and attempt.fence == intent.fence:
            return _move(intent, attempt, outcome, actor=actor, actor_id=actor_id, evidence=kept, at=at)
        what = Observed.LATE if news else Observed.AGAIN
        if kept:
            history.observe(intent.pk, what, by=actor_id, evidence=kept, at=at)
        # The same twice is one answer; another one than before contradicts.
        if news or outcome.result != before:
            compare(intent, attempt, outcome, at)
        return for_reading(intent.pk)


def _close(attempt: Attempt, outcome: Outcome, closed_by: ClosedBy, at: datetime) -> bool:
    """Whether this is news: the attempt's first answer, or its first after silence."""
    if attempt.closed_at is None:
        attempt.result, attempt.reason = outcome.result, outcome.reason
        attempt.phase, attempt.http_status = outcome.phase, outcome.http_status
        attempt.closed_at, attempt.closed_by = at, closed_by
    elif (
        attempt.result == Result.NO_ANSWER
        and not attempt.late_result
        and (attempt.closed_by == ClosedBy.CLOCK or outcome.result != Result.NO_ANSWER)
    ):
        attempt.late_result, attempt.late_reason, attempt.late_at = outcome.result, outcome.reason, at
        attempt.phase = outcome.phase or attempt.phase
        attempt.http_status = outcome.http_status or attempt.http_status
    else:
        return False
    attempt.save()
    return True


def for_reading(intent_id: UUID) -> Intent:
    return Intent.objects.select_related("policy").get(pk=intent_id)


def compare(intent: Intent, attempt: Attempt, outcome: Outcome, at: datetime) -> None:
    """What an attempt says late or twice may contradict where its intent is by now; then a person looks at it."""
    says_yes = outcome.result in (Result.CONFIRMED, Result.ACCEPTED)
    # A no speaks for its own attempt; it contradicts only what that attempt alone can have done.
    says_no = outcome.result in HARMLESS and all(other.harmless for other in intent.attempts.exclude(pk=attempt.pk))
    no_effect = intent.status in (Status.FAILED, Status.RECORDED, Status.HELD, Status.CANCELLED)
    if (no_effect and says_yes) or (intent.status == Status.CONFIRMED and says_no):
        hooks.tell_contradiction(intent, attempt)
    elif not intent.settled and says_yes:
        look_soon(intent, at)


def look_soon(intent: Intent, at: datetime) -> None:
    """A yes that may not settle it is a reason to look, where there is a book to look into."""
    if policy.can_look_up(policy.read(intent.policy.text)):
        transitions.note(intent.pk, now=at, next_check_at=at)


def _move(
    intent: Intent,
    attempt: Attempt,
    outcome: Outcome,
    *,
    actor: Actor,
    actor_id: str,
    evidence: tuple[Evidence, ...],
    at: datetime,
) -> Intent:
    others = [other.known_result for other in intent.attempts.exclude(pk=attempt.pk)]
    to = what_follows(outcome.result, others)
    if to is None or to == intent.status:
        if evidence:
            what = Observed.ACCEPTED if to is None else Observed.LATE
            history.observe(intent.pk, what, by=actor_id, evidence=evidence, at=at)
        return _accepted(intent, outcome, at) if to is None else for_reading(intent.pk)
    reason, columns = _result_columns(intent, outcome, to, others, at)
    moved = transitions.apply(
        intent.pk,
        expected=(Status.SUBMITTED, Status.UNKNOWN),
        to=to,
        actor=actor,
        actor_id=actor_id,
        reason=reason,
        evidence=evidence,
        fence=attempt.fence,
        now=at,
        **columns,
    )
    given_up = to is Status.RECORDED and columns["next_attempt_at"] is None and not outcome.person_first
    if given_up and actor is Actor.WORKER:
        return transitions.apply(
            intent.pk,
            expected=Status.RECORDED,
            to=Status.FAILED,
            actor=actor,
            actor_id=actor_id,
            reason=Reason.NOT_SENT_GIVEN_UP,
            evidence=evidence,
            now=at,
            settled_by=SettledBy.NOTHING_SENT if proven_unsent(intent) else SettledBy.ANSWER,
        )
    return moved


def _result_columns(
    intent: Intent, outcome: Outcome, to: Status, others: list[str], at: datetime
) -> tuple[str, dict[str, Any]]:
    """The reason of the transition and the columns that change with it; an unknown says why no answer came."""
    if to is Status.CONFIRMED:
        return Reason.CONFIRMED_BY_ANSWER, {
            "external_id": outcome.external_id,
            "settled_amount_minor": intent.amount_minor if outcome.amount_minor is None else outcome.amount_minor,
            "settled_currency": outcome.currency or intent.currency,
            "settled_by": SettledBy.ANSWER,
            "next_check_at": _relook_at(intent, at),
            "checks_made": 0,
        }
    if to is Status.FAILED:
        return Reason.REFUSED, {"settled_by": SettledBy.ANSWER}
    if to is Status.RECORDED:
        failures = 1 + sum(result == Result.NOT_SENT for result in others)
        rules = policy.read(intent.policy.text)
        again = failures <= rules.not_sent_retries and intent.executor == Executor.LANDED
        delay = timedelta(seconds=policy.retry_delay_s(failures))
        return Reason.NOT_SENT, {
            "next_attempt_at": at + delay if again else None,
            "first_maybe_sent_at": None,
        }
    plan: dict[str, Any] = {"next_attempt_at": replay_at(intent, at)}
    if outcome.result in HARMLESS:
        return Reason.EARLIER_ATTEMPT_OPEN, plan
    return outcome.reason, plan


def _relook_at(intent: Intent, at: datetime) -> datetime | None:
    """When the book is asked whether it agrees, where the kind wants that: late enough to show it."""
    rules = policy.read(intent.policy.text)
    if not policy.relooks(rules, intent.amount_minor, intent.currency, lot=relook_lot(intent)):
        return None
    return at + timedelta(seconds=rules.lag_s + policy.check_delay_s(rules, 0))


def relook_lot(intent: Intent) -> int:
    """The lot, from 0 to 99, that decides whether it is in the share: the same however often it is asked for.

    From the salt, which no agent is shown: nobody can propose until the lot is a lucky one.
    """
    return int(digest(f"relook:{intent.pk}", salt=intent.payload_salt), 16) % 100


def sendings(intent: Intent) -> list[Sending]:
    """What is known of the intent's attempts, in order; of an open one, that it may have arrived."""
    return [
        Sending(
            harmless=attempt.harmless,
            refused=attempt.known_result == Result.REFUSED,
            reason=attempt.late_reason or attempt.reason,
        )
        for attempt in intent.attempts.order_by("number")
    ]


def replay_at(intent: Intent, now: datetime) -> datetime | None:
    """When its key is sent again by machine, as it becomes unknown now; None: not by machine."""
    rules = policy.read(intent.policy.text)
    if intent.executor != Executor.LANDED or rules.replay != Replay.IN_WINDOW:
        return None
    at = replays.next_at(
        rules,
        sendings(intent),
        first_maybe_sent_at=intent.first_maybe_sent_at,
        deadline_ms=intent.downstream.deadline_ms,
        now=now,
    )
    # What may not be sent any more by then is no plan: waiting for it, nobody would be asked.
    in_time = at is not None and (intent.send_before is None or at < intent.send_before)
    return at if in_time else None


def _accepted(intent: Intent, outcome: Outcome, at: datetime) -> Intent:
    """Accepted and not finished: the lease ends, polling takes over, the subject stays blocked."""
    rules = policy.read(intent.policy.text)
    due = at + timedelta(seconds=policy.check_delay_s(rules, 0))
    transitions.note(
        intent.pk,
        now=at,
        external_id=outcome.external_id or intent.external_id,
        lease_until=None,
        next_check_at=due if policy.can_look_up(rules) else None,
    )
    intent.refresh_from_db()
    return intent


def expire_lease(intent_id: UUID, *, now: datetime, clock_id: str) -> Intent:
    """The clock's part: nobody said how the open attempt ended, so it is unknown. The fence stays, so that a late
    answer of this attempt still counts. Raises StaleTransition when it was settled meanwhile."""
    with transaction.atomic():
        found = for_change(Intent).select_related("policy", "downstream").get(pk=intent_id)
        intent = transitions.apply(
            intent_id,
            expected=Status.SUBMITTED,
            to=Status.UNKNOWN,
            actor=Actor.CLOCK,
            actor_id=clock_id,
            reason=Reason.LEASE_OVER,
            now=now,
            next_attempt_at=replay_at(found, now),
        )
        Attempt.objects.filter(intent_id=intent_id, closed_at__isnull=True).update(
            closed_at=now, closed_by=ClosedBy.CLOCK, result=Result.NO_ANSWER, reason="lease_over"
        )
    return intent
