"""The in-process API: what a Django service in the same project calls. Thin; every rule lives elsewhere.

from actions import services as actions

intent = actions.record_intent(kind="refund", subject="order-4812", amount="50.00", currency="EUR",
                               executor="landed")
"""

import json
import secrets
from collections.abc import Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from actions import callers, jobs, limits, recording, stops, withdrawing
from actions.errors import InsideTransaction, Invalid, MayHaveHappened, NotApproved
from actions.models import Agent, Executor, Intent, Result
from actions.proposals import Proposal
from actions.reasons import Reason
from actions.statuses import Actor, Status


def application() -> Agent:
    """The built-in agent for calls without a token; its reports are trusted and every kind is open to it."""
    agent, _ = Agent.objects.get_or_create(
        name="application", defaults={"title": "This application", "built_in": True}
    )
    return agent


def record_intent(
    *,
    kind: str,
    executor: str,
    subject: str | None = None,
    amount: str | int | None = None,
    currency: str | None = None,
    params: Mapping[str, Any] | None = None,
    note: str = "",
    context: Mapping[str, Any] | None = None,
    send_before: datetime | None = None,
    request_key: str | None = None,
    idempotency_key: str | None = None,
) -> Intent:
    """Records an intent and returns it.

    `executor="landed"` joins the caller's own transaction and is sent only after its commit: an outbox.
    `executor="caller"` commits at once and returns only when this very call may send; it refuses to run inside
    an open transaction. Both refuse while autocommit is off. `amount` is a decimal string ("50.00") or whole units
    (50), never a float.

    Raises:
        InsideTransaction, MayHaveHappened (it is claimed already), NotApproved (a person must approve first), and
        whatever `recording.record` raises.
    """
    if isinstance(amount, float):
        raise Invalid.field("amount", "A float has no exact value: give a decimal string.")
    if _managed_by_hand():
        raise InsideTransaction("Landed joins no transaction that is managed by hand: use transaction.atomic().")
    if executor == Executor.CALLER and connection.in_atomic_block:
        raise InsideTransaction()
    claim_token = secrets.token_urlsafe(32) if executor == Executor.CALLER else None
    agent = application()
    recorded = recording.record(
        Proposal(
            kind=kind,
            subject=subject,
            amount=None if amount is None else str(amount),
            currency=currency,
            params=params or {},
            note=note,
            context=context or {},
            executor=executor,
            claim_token=claim_token,
            send_before=send_before,
        ),
        agent=agent,
        request_key=request_key,
        idempotency_key=idempotency_key,
        actor=Actor.APPLICATION,
    )
    intent = recorded.intent
    if executor == Executor.LANDED:
        jobs.ring_after_commit(jobs.SEND)
    elif intent.status == Status.HELD:
        raise NotApproved(intent=intent)
    elif intent.status == Status.RECORDED:
        # Approved meanwhile, proven not sent, or recorded while nothing may be sent: whether this call may, the claim
        # says.
        callers.claim(intent.pk, claim_token=str(claim_token), actor_id=_me(agent))
        intent.refresh_from_db()
    elif recorded.replayed:
        raise MayHaveHappened(intent=intent)
    elif stops.of_intent(intent):
        # Placed while this was being recorded. Nobody but this call could have sent it, and it has not.
        mark_not_sent(intent.pk, "It was stopped while it was recorded.")
        raise NotApproved(intent=intent)
    return intent


def _managed_by_hand() -> bool:
    """Whether autocommit is off. Atomic blocks commit nothing then (on SQLite: too early), so nothing said here about
    what is durable, or undone, would hold."""
    return not (connection.commit_on_exit if connection.in_atomic_block else connection.get_autocommit())


def _me(agent: Agent) -> str:
    return f"agent:{agent.pk}"


def mark_confirmed(intent_id: UUID, result: Any = None, *, external_id: str = "") -> Intent:
    """The call returned: `result` is kept as evidence, its `id` becomes the external id."""
    found = external_id or _id_of(result)
    return _report(intent_id, Result.CONFIRMED, {"result": _plain(result)}, external_id=found)


def mark_failed(intent_id: UUID, answer: Any) -> Intent:
    """The downstream refused it, definitely; `answer` says how. An exception that leaves room is not a refusal."""
    if answer in (None, ""):
        raise Invalid.field("answer", "A refusal needs the answer that says so; without one it is unknown.")
    return _report(intent_id, Result.REFUSED, {"answer": _plain(answer)})


def mark_unknown(intent_id: UUID, why: Any = "") -> Intent:
    """No usable answer came. Not "failed": it may have happened."""
    return _report(intent_id, Result.NO_ANSWER, {"why": _plain(why)}, reason=Reason.REPORTED_UNKNOWN)


def mark_not_sent(intent_id: UUID, why: Any) -> Intent:
    """Nothing left this process, provably; it may be claimed again."""
    return _report(intent_id, Result.NOT_SENT, {"why": _plain(why)})


def cancel(intent_id: UUID) -> Intent:
    """Withdraws an intent that was never sent. Raises TooLate once it may have been."""
    agent = application()
    limits.come_first(agent)
    return withdrawing.cancel(
        intent_id, actor=Actor.APPLICATION, actor_id=_me(agent), reason=Reason.CANCELLED_BY_AGENT
    )


def _report(
    intent_id: UUID,
    result: Result,
    content: dict[str, Any],
    *,
    external_id: str = "",
    reason: str = "reported",
) -> Intent:
    agent = application()
    limits.come_first(agent)
    outcome = callers.reported(result, external_id=external_id, reason=reason)
    return callers.report(intent_id, outcome=outcome, content=content, actor_id=_me(agent))


def _id_of(result: Any) -> str:
    found = result.get("id") if isinstance(result, Mapping) else getattr(result, "id", None)
    return "" if found is None else str(found)[:255]


def _plain(value: Any) -> Any:
    """`value` as plain JSON for the evidence; what JSON can't hold is kept as text."""
    text = json.dumps(value, default=repr, ensure_ascii=False)
    # Evidence is canonical JSON, whose numbers are doubles: larger or fractional ones are kept as their digits.
    return json.loads(text, parse_float=str, parse_int=lambda digits: int(digits) if len(digits) < 16 else digits)
