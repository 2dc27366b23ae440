"""What a decision does, once it takes effect. Each is one transition, or none."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from actions import callers, evidence, history, jobs, policy, replays, stops, subjects, transitions
from actions.errors import BadDecision, StaleTransition
from actions.locking import for_change
from actions.models import Evidence, Executor, Intent, Observed, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation import entries, ties
from reconciliation.models import Choice, Decision, LedgerEntry, Match, MatchRole
from reconciliation.reviews import differences, grounds


def carry_out(decision: Decision, intent: Intent, *, now: datetime) -> None:
    """Puts a decision into effect, inside the transaction that holds the intent's lock."""
    {
        Choice.CONFIRM: _confirm,
        Choice.FAIL: _fail,
        Choice.APPROVE: _approve,
        Choice.REJECT: _reject,
        Choice.UPHOLD: _uphold,
        Choice.SEND_AGAIN: _send_again,
    }[Choice(decision.choice)](decision, intent, now)


def _who(decision: Decision) -> str:
    return f"person:{decision.person_id}"


def grounds_of(decision: Decision) -> list[Evidence]:
    """The evidence that a decision rests on, the note included."""
    return evidence.named_in(decision.evidence)


def _send_again(decision: Decision, intent: Intent, now: datetime) -> None:
    """A worker sends the same key once more, as it would by itself; it stays unknown until that has begun."""
    if why := against_sending_again(intent, now):
        raise BadDecision(why)
    if intent.version != decision.seen_version or not transitions.note(
        intent.pk, fence=intent.fence, now=now, next_attempt_at=now
    ):
        raise StaleTransition(status=intent.status)
    jobs.ring_after_commit(jobs.SEND)


def sent_again_until(intent: Intent) -> datetime | None:
    """Until when its key may be sent again; None: never, by anybody."""
    down = intent.downstream
    if intent.executor != Executor.LANDED or not down.dedupes or down.dedupe_window_s is None:
        return None
    until = replays.last_moment(
        policy.read(intent.policy.text),
        intent.first_maybe_sent_at,
        deadline_ms=down.deadline_ms,
        window_s=down.dedupe_window_s,
    )
    return min((time for time in (until, intent.send_before) if time is not None), default=None) if until else None


def against_sending_again(intent: Intent, now: datetime) -> str:
    """Why its key may not be sent again now; "" when it may."""
    until = sent_again_until(intent)
    if until is None:
        return "The downstream doesn't promise to carry out one key only once."
    if until <= now:
        return "The time for this is over: sent again, it could be carried out a second time."
    if intent.attempts.filter(closed_at__isnull=True).exists():
        return "It may be being sent at this moment: wait until that attempt has ended."
    if callers.stop_of(intent) is not None:
        return "Its agent, kind or downstream is paused: nothing is sent at the moment."
    return grounds.for_stops(stops.of_intent(intent))


def _confirm(decision: Decision, intent: Intent, now: datetime) -> None:
    external_id = intent.external_id
    if decision.entry_id is not None:
        external_id = tie(intent, decision, now).entry_id
    moved = transitions.apply(
        intent.pk,
        expected=Status.UNKNOWN,
        to=Status.CONFIRMED,
        actor=Actor.REVIEWER,
        actor_id=_who(decision),
        reason=Reason.DECIDED,
        evidence=grounds_of(decision),
        version=decision.seen_version,
        now=now,
        external_id=external_id,
        settled_amount_minor=decision.settled_amount_minor,
        settled_currency=decision.settled_currency,
        settled_by=SettledBy.DECISION,
    )
    differences.settle(moved, decision, now=now)


def tie(intent: Intent, decision: Decision, now: datetime) -> LedgerEntry:
    """Ties the entry that a decision names to the intent. Raises BadDecision when it settles another one."""
    assert decision.entry_id is not None
    entry = for_change(LedgerEntry).get(pk=decision.entry_id)
    if Match.objects.filter(entry=entry, released_at__isnull=True).exists():
        raise BadDecision("This entry settles another intent already.")
    ties.tie(entry, intent, MatchRole.SETTLES, by=_who(decision), now=now)
    return entry


def settle_by(
    entry: LedgerEntry, intent: Intent, decision: Decision, *, by: str, grounds: Sequence[Evidence], now: datetime
) -> Intent:
    """The intent is confirmed, because a person says that the entry is its own: what was unknown or in the air, and
    (a correction by two people) what counted as failed. One that is confirmed already is tied to it.

    The caller holds the locks of intent and entry. Raises IntegrityError when the entry is tied already.
    """
    ties.tie(entry, intent, MatchRole.SETTLES, by=by, now=now)
    if intent.status == Status.CONFIRMED:
        history.observe(intent.pk, Observed.TIED, by=by, evidence=grounds, at=now)
        return intent
    if intent.status == Status.SUBMITTED:
        intent = transitions.apply(
            intent.pk,
            expected=Status.SUBMITTED,
            to=Status.UNKNOWN,
            actor=Actor.REVIEWER,
            actor_id=by,
            reason=Reason.IN_REVIEW,
            now=now,
            fence=intent.fence,
        )
    corrects = intent.status == Status.FAILED
    amount, currency = entries.moved(entry)
    moved = transitions.apply(
        intent.pk,
        expected=(Status.UNKNOWN, Status.FAILED),
        to=Status.CONFIRMED,
        actor=Actor.REVIEWER,
        actor_id=by,
        reason=Reason.OVERRIDDEN if corrects else Reason.DECIDED,
        evidence=grounds,
        version=intent.version,
        now=now,
        external_id=entry.entry_id,
        settled_amount_minor=amount,
        settled_currency=currency,
        settled_by=SettledBy.OVERRIDE if corrects else SettledBy.DECISION,
        disputed=False,
        guard_key=None,
    )
    differences.settle(moved, decision, now=now)
    return moved


def _fail(decision: Decision, intent: Intent, now: datetime) -> None:
    transitions.apply(
        intent.pk,
        expected=Status.UNKNOWN,
        to=Status.FAILED,
        actor=Actor.REVIEWER,
        actor_id=_who(decision),
        reason=Reason.DECIDED,
        evidence=grounds_of(decision),
        version=decision.seen_version,
        now=now,
        settled_by=SettledBy.DECISION,
    )


def _approve(decision: Decision, intent: Intent, now: datetime) -> None:
    """From here on it may be sent. It takes the guard, or a person waives that in so many words; a stop is lifted."""
    _refuse_another_payload(decision, intent)
    if intent.approve_before is not None and intent.approve_before <= now:
        raise BadDecision("The time to approve it is over; it will be withdrawn.")
    subjects.lock_family(intent.kind_id, intent.family)
    # Placed since it was decided, perhaps. One placed after this look is met by the claim.
    if why := grounds.for_stops(stops.of_intent(intent)):
        raise BadDecision(why)
    columns: dict[str, Any] = {"next_attempt_at": now if intent.executor == Executor.LANDED else None}
    if subjects.blocking(intent.kind_id, intent.subject, besides=intent.pk):
        if not decision.guard_waived:
            raise BadDecision(
                "Another intent on this order is not settled. Wait for it, or waive the guard in so many words."
            )
        columns["guard_waived"] = True
    elif intent.guard_key is None:
        columns["guard_key"] = subjects.guard_key(intent.kind_id, intent.subject)
    transitions.apply(
        intent.pk,
        expected=Status.HELD,
        to=Status.RECORDED,
        actor=Actor.REVIEWER,
        actor_id=_who(decision),
        reason=Reason.APPROVED,
        evidence=grounds_of(decision),
        version=decision.seen_version,
        now=now,
        **columns,
    )
    jobs.ring_after_commit(jobs.SEND)


def _refuse_another_payload(decision: Decision, intent: Intent) -> None:
    """An approval is for what the person read, and for nothing that was put in its place."""
    if decision.payload_digest != intent.payload_digest or not history.payload_fits(intent):
        raise BadDecision("What is stored is not what was recorded: its payload was changed. It can't be approved.")


def _reject(decision: Decision, intent: Intent, now: datetime) -> None:
    transitions.apply(
        intent.pk,
        expected=Status.HELD,
        to=Status.CANCELLED,
        actor=Actor.REVIEWER,
        actor_id=_who(decision),
        reason=Reason.REJECTED,
        evidence=grounds_of(decision),
        version=decision.seen_version,
        now=now,
    )


def _uphold(decision: Decision, intent: Intent, now: datetime) -> None:
    """The settled status stays; the dispute, if there was one, is over and the guard is free again."""
    if intent.disputed:
        transitions.note(intent.pk, now=now, disputed=False, guard_key=None, next_check_at=None)
        differences.settle(intent, decision, now=now)
    history.observe(intent.pk, Observed.UPHELD, by=_who(decision), evidence=grounds_of(decision), at=now)
