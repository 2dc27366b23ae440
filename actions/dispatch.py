"""Claim, send, save: three functions, so that a simulator can step them, and the loop that a job runs.

What is claimed is committed before the first byte leaves. Threads send; only the calling thread touches the
database. If saving an answer fails, saving is tried again, never the sending.
"""

import logging
import os
import socket
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, transaction
from django.db.models import Count, Q

from actions import (
    attempts,
    evidence,
    history,
    holding,
    loop,
    outcomes,
    subjects,
    times,
    transitions,
    transport,
)
from actions.connectors import base as connectors
from actions.connectors import registry
from actions.connectors.base import Answer, NotSendable, Target, Wanted, redact_call, text_of
from actions.locking import for_change
from actions.models import Attempt, ClosedBy, Downstream, EvidenceKind, Executor, Intent, Result, SettledBy
from actions.outcomes import Outcome
from actions.reasons import Reason
from actions.statuses import Actor, Status

log = logging.getLogger(__name__)

# For how long a failing save is tried again before the lease is left to run out, in seconds.
_SAVE_FOR_S = 30.0
# When an intent that can't be sent for a reason of ours is tried again, in seconds.
_PUT_OFF_S = 30


@dataclass(frozen=True)
class Claimed:
    """A committed attempt that now may be sent, with everything that sending needs and no database."""

    intent_id: UUID
    attempt_id: int
    connector: str
    target: Target
    wanted: Wanted
    call: transport.Call
    limits: transport.Limits


def worker_id() -> str:
    return f"{socket.gethostname()[:60]}/{os.getpid()}"


def target_of(downstream: Downstream) -> Target:
    """What a connector may know of a downstream; the secret is read from the environment here."""
    return Target(
        name=downstream.name,
        base_url=downstream.base_url,
        account=downstream.account,
        secret=os.environ.get(downstream.secret_env) if downstream.secret_env else None,
        config=downstream.config,
        dedupes=downstream.dedupes,
        connect_timeout_s=downstream.connect_timeout_ms / 1000,
        deadline_s=downstream.deadline_ms / 1000,
    )


def wanted_of(intent: Intent) -> Wanted:
    """What a connector may know of an intent: never note or context."""
    return Wanted(
        intent_id=str(intent.pk),
        idempotency_key=intent.idempotency_key,
        kind=intent.kind.name,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        amount=intent.amount,
        currency=intent.currency or None,
        params=intent.params_data,
    )


def due(now: datetime) -> Q:
    """What may be sent now: due, in time, nothing paused, and with the guard (or a person's waiver)."""
    return (
        Q(next_attempt_at__lte=now, status=Status.RECORDED, executor=Executor.LANDED)
        & (Q(send_before__isnull=True) | Q(send_before__gt=now))
        & (Q(guard_key__isnull=False) | Q(guard_waived=True))
        & Q(downstream__paused=False, kind__paused=False, agent__paused=False)
    )


def claim(*, slots: int) -> list[Claimed]:
    """Claims at most `slots` due intents in one short transaction and commits.

    Never more than a downstream's free places. What can't be sent as it is fails here, unsent; what sits on a
    disputed subject is held.
    """
    started = transport.boot_clock()
    with transaction.atomic():
        now = times.now()
        free = _free_places(now)
        if not free:
            return []
        ready = Intent.objects.filter(due(now), downstream_id__in=free).order_by("next_attempt_at", "id")
        families = list(ready.values_list("pk", "kind_id", "family")[:slots])
        # Families before rows, and in one order: a dispute holds its family while it waits for its rows.
        for kind_id, family in sorted({(kind_id, family) for _, kind_id, family in families}):
            subjects.lock_family(kind_id, family)
        found = (
            for_change(Intent, skip_locked=True)
            .select_related("kind", "policy", "downstream")
            .filter(due(now), pk__in=[pk for pk, _, _ in families])
            .order_by("next_attempt_at", "id")
        )
        claimed = []
        for intent in found:
            if free[intent.downstream_id] > 0 and (one := _claim_one(intent, now, started)) is not None:
                free[intent.downstream_id] -= 1
                claimed.append(one)
    return claimed


def _free_places(now: datetime) -> dict[int, int]:
    """Free places per downstream that has something due. Locks those rows, so that claims don't overbook."""
    wanted = Intent.objects.filter(due(now)).values("downstream_id")
    # no_key: recording, whose rows refer to the downstream, is not held up by this lock.
    rows = list(for_change(Downstream).filter(pk__in=wanted).order_by("pk"))
    busy = dict(
        Attempt.objects.filter(
            closed_at__isnull=True, lease_until__gt=now, executor=Executor.LANDED, intent__downstream__in=rows
        )
        .values_list("intent__downstream_id")
        .annotate(Count("pk"))
    )
    free = {row.pk: row.max_concurrency - busy.get(row.pk, 0) for row in rows}
    return {pk: places for pk, places in free.items() if places > 0}


def _claim_one(intent: Intent, now: datetime, started: float) -> Claimed | None:
    down = intent.downstream
    target = target_of(down)
    if down.secret_env and target.secret is None:
        _put_off(intent, f"the environment variable {down.secret_env} is not set here", now)
        return None
    try:
        wanted = wanted_of(intent)
        call = registry.get(down.connector).build(target, wanted)
        transport.check(call)
    except NotSendable as wrong:
        _fail_unsent(intent, str(wrong), now)
        return None
    except Exception as bug:
        log.exception("connector %s can't build a request", down.connector)
        _put_off(intent, repr(bug), now)
        return None
    if _disputed(intent) or not history.payload_fits(intent):
        holding.hold(intent, actor=Actor.WORKER, actor_id=f"worker:{worker_id()}", now=now)
        return None
    attempt = _submit(intent, call, target, now)
    return Claimed(
        intent_id=intent.pk,
        attempt_id=attempt.pk,
        connector=down.connector,
        target=target,
        wanted=wanted,
        call=call,
        limits=transport.Limits(
            connect_timeout_s=target.connect_timeout_s,
            deadline_s=target.deadline_s,
            # A process that was stopped in between sends nothing any more: begun later, the call could outlive
            # the lease. The clock was read before claiming and goes on while the machine sleeps.
            send_by=started + down.lease_margin_ms / 1000 * 0.8,
            reuse=target.dedupes,
        ),
    )


def _disputed(intent: Intent) -> bool:
    """Whether something related is in question, and no person waived it for this intent."""
    if intent.guard_waived:
        return False
    subjects.lock_family(intent.kind_id, intent.family)
    return any(other.disputed for other in subjects.blocking(intent.kind_id, intent.subject, besides=intent.pk))


def _put_off(intent: Intent, why: str, now: datetime) -> None:
    """Not this intent's fault, and nothing was sent: it stays recorded and is tried later, until `send_before`."""
    log.error("intent %s can't be sent now: %s", intent.pk, why)
    transitions.note(intent.pk, now=now, next_attempt_at=now + timedelta(seconds=_PUT_OFF_S))


def _fail_unsent(intent: Intent, why: str, now: datetime) -> None:
    note = evidence.store(
        intent_id=intent.pk,
        kind=EvidenceKind.NOTE,
        source=f"connector {intent.downstream.connector}",
        content=why,
        now=now,
    )
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.FAILED,
        actor=Actor.WORKER,
        actor_id=f"worker:{worker_id()}",
        reason=Reason.NOT_SENDABLE,
        evidence=[note],
        now=now,
        settled_by=SettledBy.NOTHING_SENT,
    )


def _submit(intent: Intent, call: transport.Call, target: Target, now: datetime) -> Attempt:
    """The attempt, what it is about to send, and the status, in this order, so that history names the request."""
    down = intent.downstream
    lease = now + timedelta(milliseconds=down.deadline_ms + down.lease_margin_ms)
    attempt = attempts.open_attempt(
        intent, executor=Executor.LANDED, fence=intent.fence + 1, worker=worker_id(), lease_until=lease, now=now
    )
    request = evidence.store(
        intent_id=intent.pk,
        attempt=attempt,
        kind=EvidenceKind.REQUEST,
        source=call.url,
        content=redact_call(call, target),
        now=now,
        secrets=[target.secret],
    )
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.SUBMITTED,
        actor=Actor.WORKER,
        actor_id=f"worker:{worker_id()}",
        reason=Reason.CLAIMED,
        evidence=[request],
        now=now,
        fence=intent.fence,
        new_fence=attempt.fence,
        lease_until=lease,
        first_maybe_sent_at=intent.first_maybe_sent_at or now,
    )
    return attempt


def send(claimed: Claimed) -> transport.Reply:
    """Sends once. Touches no database; runs in a thread."""
    return transport.send(claimed.call, claimed.limits)


def _read(claimed: Claimed, reply: transport.Reply) -> Answer:
    """A connector that breaks over an answer makes it prove nothing; the answer itself is kept as evidence."""
    try:
        return registry.get(claimed.connector).read(claimed.target, claimed.wanted, reply)
    except Exception:
        log.exception("connector %s can't read the answer of attempt %s", claimed.connector, claimed.attempt_id)
        sent = connectors.Result.NO_ANSWER if reply.maybe_sent else connectors.Result.NOT_SENT
        return Answer(result=sent, reason="connector_error", http_status=reply.status)


def save(claimed: Claimed, reply: transport.Reply) -> Intent:
    """Stores the answer, closes the attempt and moves the intent as far as the answer allows."""
    answer = _read(claimed, reply)
    outcome = Outcome(
        result=Result(answer.result.value),
        reason=answer.reason,
        phase=reply.phase.value,
        http_status=reply.status,
        external_id=answer.external_id or "",
        amount_minor=answer.amount_minor,
        currency=answer.currency or "",
    )
    with transaction.atomic():
        # First of all: rows that refer to the intent share its key, and whoever settles it would wait for them.
        for_change(Intent).get(pk=claimed.intent_id)
        now = times.now()
        attempt = Attempt.objects.get(pk=claimed.attempt_id)
        seen = evidence.store(
            intent_id=claimed.intent_id,
            attempt=attempt,
            kind=EvidenceKind.ANSWER,
            source=claimed.call.url,
            content={
                "phase": reply.phase.value,
                "reason": answer.reason,
                "status": reply.status,
                "headers": dict(reply.headers),
                "body": text_of(reply.body),
                "detail": reply.detail,
                "differs": list(answer.differs),
                "elapsed_ms": reply.elapsed_ms,
            },
            now=now,
            secrets=[claimed.target.secret],
        )
        return outcomes.apply_outcome(
            claimed.attempt_id,
            outcome,
            actor=Actor.WORKER,
            actor_id=f"worker:{worker_id()}",
            closed_by=ClosedBy.ANSWER,
            evidence=[seen],
            now=now,
        )


def save_until_saved(claimed: Claimed, reply: transport.Reply) -> None:
    """Tries to save until the database takes it; after that the lease runs out and the clock says `unknown`."""
    give_up = time.monotonic() + _SAVE_FOR_S
    while True:
        try:
            save(claimed, reply)
            return
        except (OperationalError, InterfaceError) as away:
            if time.monotonic() > give_up:
                log.error("the answer of attempt %s could not be saved: %s", claimed.attempt_id, away)
                return
            log.warning("saving the answer of attempt %s again: %s", claimed.attempt_id, away)
            close_old_connections()
            time.sleep(0.5)


def run(*, budget_s: float, slots: int | None = None) -> int:
    """Claims and sends until nothing is due; stops claiming after `budget_s` seconds. Returns how many."""
    return loop.run(
        claim=lambda free: claim(slots=free),
        work=send,
        save=save_until_saved,
        slots=slots or settings.LANDED_SEND_SLOTS,
        budget_s=budget_s,
    )
