"""Saves what came of a sending: the answer, what it proves, and whether the downstream still answers."""

import logging
import time
from datetime import datetime
from typing import Any

from django.db import InterfaceError, OperationalError, close_old_connections, transaction

from actions import (
    breakers,
    evidence,
    holding,
    outcomes,
    subjects,
    times,
    transport,
)
from actions.connectors import base as connectors
from actions.connectors import registry
from actions.connectors.base import (
    Answer,
    text_of,
)
from actions.handing import Came, Claimed, Objection, worker_id
from actions.locking import for_change
from actions.models import Attempt, ClosedBy, Downstream, EvidenceKind, Intent, Line, Result
from actions.outcomes import Outcome
from actions.statuses import Actor, Status

log = logging.getLogger(__name__)

# For how long a failing save is tried again before the lease is left to run out, in seconds.
_SAVE_FOR_S = 30.0


def _read(claimed: Claimed, reply: transport.Reply) -> Answer:
    """A connector that breaks over an answer makes it prove nothing; the answer itself is kept as evidence."""
    try:
        return registry.get(claimed.connector).read(claimed.target, claimed.wanted, reply)
    except Exception:
        log.exception("connector %s can't read the answer of attempt %s", claimed.connector, claimed.attempt_id)
        sent = connectors.Result.NO_ANSWER if reply.maybe_sent else connectors.Result.NOT_SENT
        return Answer(result=sent, reason="connector_error", http_status=reply.status)


def _understood(claimed: Claimed, came: Came) -> tuple[Outcome, dict[str, Any]]:
    """What came of the attempt, and what is kept of it as evidence."""
    if isinstance(came, Objection):
        outcome = Outcome(
            result=Result.NOT_SENT,
            reason=came.reason,
            phase=transport.Phase.START.value,
            person_first=came.reason == "person_first",
        )
        return outcome, {"phase": outcome.phase, "reason": came.reason, "detail": came.message}
    answer = _read(claimed, came)
    outcome = Outcome(
        result=Result(answer.result.value),
        reason=answer.reason,
        phase=came.phase.value,
        http_status=came.status,
        external_id=answer.external_id or "",
        amount_minor=answer.amount_minor,
        currency=answer.currency or "",
    )
    return outcome, {
        "phase": came.phase.value,
        "reason": answer.reason,
        "status": came.status,
        "headers": dict(came.headers),
        "body": text_of(came.body),
        "detail": came.detail,
        "differs": list(answer.differs),
        "elapsed_ms": came.elapsed_ms,
    }


def save(claimed: Claimed, came: Came) -> Intent:
    """Stores what came, closes the attempt and moves the intent as far as that allows."""
    outcome, content = _understood(claimed, came)
    actor_id = f"worker:{worker_id()}"
    with transaction.atomic():
        subjects.lock_family_of(claimed.intent_id)
        # First of all: rows that refer to the intent share its key, and whoever settles it would wait for them.
        for_change(Intent).get(pk=claimed.intent_id)
        now = times.now()
        seen = evidence.store(
            intent_id=claimed.intent_id,
            attempt=Attempt.objects.get(pk=claimed.attempt_id),
            kind=EvidenceKind.ANSWER,
            source=claimed.call.url,
            content=content,
            now=now,
            secrets=[claimed.target.secret],
        )
        intent = outcomes.apply_outcome(
            claimed.attempt_id,
            outcome,
            actor=Actor.WORKER,
            actor_id=actor_id,
            closed_by=ClosedBy.ANSWER,
            evidence=[seen],
            now=now,
        )
        if outcome.person_first and intent.status == Status.RECORDED:
            why = came.why if isinstance(came, Objection) else "objected"
            holding.hold(intent, actor=Actor.WORKER, actor_id=actor_id, now=now, why=why, evidence=[seen])
            intent.refresh_from_db()
        _tell_breaker(intent.downstream_id, outcome, now)
        return intent


# Not sent, and not because of the downstream.
_OUR_OWN = frozenset({transport.Reason.TOO_LATE.value, "person_first", "not_checked_first"})


def _tell_breaker(downstream_id: int, outcome: Outcome, now: datetime) -> None:
    """An answer is one, whatever it says. "Not processed" says nothing of whether others would be."""
    if outcome.result in (Result.CONFIRMED, Result.ACCEPTED, Result.REFUSED):
        heard = True
    elif outcome.result == Result.NO_ANSWER or (outcome.http_status is None and outcome.reason not in _OUR_OWN):
        heard = False
    else:
        return
    downstream = Downstream.objects.get(pk=downstream_id)
    (breakers.answered if heard else breakers.unanswered)(downstream, Line.SENDING, now=now)


def save_until_saved(claimed: Claimed, came: Came) -> None:
    """Tries to save until the database takes it; after that the lease runs out and the clock says `unknown`."""
    give_up = time.monotonic() + _SAVE_FOR_S
    while True:
        try:
            save(claimed, came)
            return
        except (OperationalError, InterfaceError) as away:
            if time.monotonic() > give_up:
                log.error("the answer of attempt %s could not be saved: %s", claimed.attempt_id, away)
                return
            log.warning("saving the answer of attempt %s again: %s", claimed.attempt_id, away)
            close_old_connections()
            time.sleep(0.5)
