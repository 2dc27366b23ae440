"""What a decision does, once it takes effect. Each is one transition, or none."""

from datetime import datetime
from typing import Any

from actions import evidence, history, jobs, subjects, transitions
from actions.errors import BadDecision
from actions.locking import for_change
from actions.models import Evidence, Executor, Intent, Observed, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import Choice, Decision, LedgerEntry, Match, MatchRole


def carry_out(decision: Decision, intent: Intent, *, now: datetime) -> None:
    """Puts a decision into effect, inside the transaction that holds the intent's lock."""
    {
        Choice.CONFIRM: _confirm,
        Choice.FAIL: _fail,
        Choice.APPROVE: _approve,
        Choice.REJECT: _reject,
        Choice.UPHOLD: _uphold,
    }[Choice(decision.choice)](decision, intent, now)


def _who(decision: Decision) -> str:
    return f"person:{decision.person_id}"


def grounds_of(decision: Decision) -> list[Evidence]:
    """The evidence that a decision rests on, the note included."""
    return evidence.named_in(decision.evidence)


def _confirm(decision: Decision, intent: Intent, now: datetime) -> None:
    external_id = intent.external_id
    if decision.entry_id is not None:
        external_id = tie(intent, decision, now).entry_id
    transitions.apply(
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


def tie(intent: Intent, decision: Decision, now: datetime) -> LedgerEntry:
    """Ties the entry that a decision names to the intent. Raises BadDecision when it settles another one."""
    assert decision.entry_id is not None
    entry = for_change(LedgerEntry).get(pk=decision.entry_id)
    if Match.objects.filter(entry=entry, released_at__isnull=True).exists():
        raise BadDecision("This entry settles another intent already.")
    Match.objects.create(
        entry=entry,
        intent=intent,
        role=MatchRole.SETTLES,
        entry_state=entry.state,
        amount_minor=entry.amount_minor,
        currency=entry.currency,
        by=_who(decision),
        at=now,
    )
    return entry


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
    """From here on it may be sent. It takes the guard, or a person waives it in so many words."""
    subjects.lock_family(intent.kind_id, intent.family)
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
    """The settled status stays; the dispute is over and the guard is free again."""
    transitions.note(intent.pk, now=now, disputed=False, guard_key=None, next_check_at=None)
    history.observe(intent.pk, Observed.UPHELD, by=_who(decision), evidence=grounds_of(decision), at=now)
