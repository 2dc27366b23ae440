"""Claim, send, save: three functions, so that a simulator can step them, and the loop that a job runs.

What is claimed is committed before the first byte leaves. Threads send; only the calling thread touches the
database. If saving an answer fails, saving is tried again, never the sending.
"""

import logging
import os
import socket
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, cast
from uuid import UUID

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, transaction
from django.db.models import Count, Q

from actions import (
    attempts,
    breakers,
    evidence,
    history,
    holding,
    loop,
    outcomes,
    policy,
    replays,
    stops,
    subjects,
    times,
    transitions,
    transport,
)
from actions.connectors import base as connectors
from actions.connectors import registry
from actions.connectors.base import (
    Answer,
    LooksFirst,
    LookupFailed,
    NotSendable,
    Target,
    Wanted,
    redact_call,
    text_of,
)
from actions.locking import for_change
from actions.models import Attempt, ClosedBy, Downstream, EvidenceKind, Executor, Intent, Line, Result, SettledBy
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
    # Whether the connector looks at the downstream before anything is sent, and until when (on the boot clock).
    look_first: bool = False
    look_until: float = 0.0


@dataclass(frozen=True)
class Objection:
    """Nothing was sent: what was looked at first speaks against it, or could not be seen (`reason` says which)."""

    reason: str
    message: str


Came = transport.Reply | Objection


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
    """What may be sent now: due, in time, nothing paused, and with the guard (or a person's waiver).

    An unknown one is due when its kind wants the same key sent again, and its downstream still says that it dedupes.
    """
    return (
        Q(next_attempt_at__lte=now, executor=Executor.LANDED)
        & (Q(status=Status.RECORDED) | Q(status=Status.UNKNOWN, downstream__dedupes=True))
        & (Q(send_before__isnull=True) | Q(send_before__gt=now))
        & (Q(guard_key__isnull=False) | Q(guard_waived=True))
        & Q(downstream__paused=False, kind__paused=False, agent__paused=False)
    )


def anything_due(now: datetime) -> bool:
    """Whether workers would find something that may be sent."""
    found = Intent.objects.filter(due(now))
    return found.exclude(downstream__in=breakers.waiting(Line.SENDING, now=now)).exists()


def claim(*, slots: int) -> list[Claimed]:
    """Claims at most `slots` due intents in one short transaction and commits.

    Never more than a downstream's free places: one, for a probe, while its breaker is open. What can't be sent as it
    is fails here, unsent; what sits on a disputed subject, or under a stop, is held.
    """
    started = transport.boot_clock()
    with transaction.atomic():
        now = times.now()
        free, broken = _free_places(now)
        ready = _ready(now, free, broken, slots)
        # Families before rows, and in one order: a dispute holds its family while it waits for its rows.
        for kind_id, family in sorted({(kind_id, family) for _, kind_id, family in ready}):
            subjects.lock_family(kind_id, family)
        found = (
            for_change(Intent, skip_locked=True)
            .select_related("kind", "policy", "downstream")
            .filter(due(now), pk__in=[pk for pk, _, _ in ready])
            .order_by("next_attempt_at", "id")
        )
        claimed = []
        for intent in found:
            if free[intent.downstream_id] > 0 and (one := _claim_one(intent, now, started)) is not None:
                free[intent.downstream_id] -= 1
                claimed.append(one)
                if intent.downstream_id in broken:
                    lease = timedelta(milliseconds=intent.downstream.deadline_ms + intent.downstream.lease_margin_ms)
                    breakers.took_probe(intent.downstream_id, Line.SENDING, now=now, at_least=lease)
    return claimed


def _free_places(now: datetime) -> tuple[dict[int, int], set[int]]:
    """Free places per downstream that has something due, and which of them are there for a probe only.

    Locks those rows, so that claims don't overbook; what others did is read after that, not before.
    """
    wanted = Intent.objects.filter(due(now)).values("downstream_id")
    # no_key: recording, whose rows refer to the downstream, is not held up by this lock.
    rows = list(for_change(Downstream).filter(pk__in=wanted).order_by("pk"))
    if not rows:
        return {}, set()
    busy = dict(
        Attempt.objects.filter(
            closed_at__isnull=True, lease_until__gt=now, executor=Executor.LANDED, intent__downstream__in=rows
        )
        .values_list("intent__downstream_id")
        .annotate(Count("pk"))
    )
    free = {row.pk: row.max_concurrency - busy.get(row.pk, 0) for row in rows}
    broken = breakers.open_ones(Line.SENDING)
    for pk, probe_at in broken.items():
        if pk in free:
            free[pk] = min(free[pk], 1 if probe_at <= now else 0)
    return {pk: places for pk, places in free.items() if places > 0}, set(broken)


def _ready(
    now: datetime, free: Mapping[int, int], broken: Collection[int], slots: int
) -> list[tuple[UUID, int, str]]:
    """At most `slots` of what may be sent, oldest first: id, kind and family.

    Asked for each downstream by itself: a full one, with thousands waiting, keeps no other from its turn.
    """
    ready: list[Any] = []  # (due at, id, kind, family)
    for pk, places in free.items():
        # The best probe is one whose outcome is unknown already: it can't become one unknown more.
        order = ("-status", "next_attempt_at", "id") if pk in broken else ("next_attempt_at", "id")
        mine = Intent.objects.filter(due(now), downstream_id=pk).order_by(*order)
        ready += mine.values_list("next_attempt_at", "pk", "kind_id", "family")[: min(places, slots)]
    return [(pk, kind_id, family) for _, pk, kind_id, family in sorted(ready)[:slots]]


def _claim_one(intent: Intent, now: datetime, started: float) -> Claimed | None:
    down = intent.downstream
    replay = intent.status == Status.UNKNOWN
    until = _send_until(intent, replay=replay)
    if replay and (until is None or until <= now):
        _leave_unknown(intent, "the key's window is over", now)
        return None
    target = target_of(down)
    if down.secret_env and target.secret is None:
        _put_off(intent, f"the environment variable {down.secret_env} is not set here", now)
        return None
    try:
        connector = registry.get(down.connector)
        wanted = wanted_of(intent)
        call = connector.build(target, wanted)
        transport.check(call)
    except NotSendable as wrong:
        if replay:
            _leave_unknown(intent, str(wrong), now)
        else:
            _fail_unsent(intent, str(wrong), now)
        return None
    except Exception as bug:
        log.exception("connector %s can't build a request", down.connector)
        _put_off(intent, repr(bug), now)
        return None
    if (why := _held_by(intent)) is not None:
        if replay:
            _leave_unknown(intent, why, now)
        else:
            holding.hold(intent, actor=Actor.WORKER, actor_id=f"worker:{worker_id()}", now=now, why=why)
        return None
    attempt = _submit(intent, call, target, now)
    margin_s = down.lease_margin_ms / 1000
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
            send_by=started + min(margin_s * 0.8, (until - now).total_seconds() if until else margin_s),
            reuse=target.dedupes,
        ),
        # The first sending was looked at; a person who approved it knew of the objection.
        look_first=hasattr(connector, "object_to") and not replay and holding.OBJECTED not in intent.hold_reasons,
        look_until=started + margin_s * 0.5,
    )


def _send_until(intent: Intent, *, replay: bool) -> datetime | None:
    """The last moment at which the first byte may leave: the intent's own, and for a replay its key's."""
    times_: list[datetime | None] = [intent.send_before]
    if replay:
        down = intent.downstream
        last = replays.last_moment(
            policy.read(intent.policy.text),
            intent.first_maybe_sent_at,
            deadline_ms=down.deadline_ms,
            window_s=down.dedupe_window_s,
        )
        if last is None or down.dedupe_window_s is None:
            return None
        times_.append(last)
    return min((time for time in times_ if time is not None), default=None)


def _held_by(intent: Intent) -> holding.Why | None:
    """Why a person has to look before this is sent, as far as we know ourselves."""
    if stops.of_intent(intent):
        return "stopped"
    return "contradiction" if _disputed(intent) or not history.payload_fits(intent) else None


def _leave_unknown(intent: Intent, why: str, now: datetime) -> None:
    """Its key is not sent again. It stays unknown: its looks, or a person, find out what happened."""
    log.warning("intent %s is not sent again: %s", intent.pk, why)
    transitions.note(intent.pk, now=now, next_attempt_at=None)


def _disputed(intent: Intent) -> bool:
    """Whether something related is in question, and no person waived it for this intent."""
    if intent.guard_waived:
        return False
    subjects.lock_family(intent.kind_id, intent.family)
    return any(other.disputed for other in subjects.blocking(intent.kind_id, intent.subject, besides=intent.pk))


def _put_off(intent: Intent, why: str, now: datetime) -> None:
    """Not this intent's fault, and nothing was sent: it stays as it is and is tried later, until `send_before`."""
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
    replay = intent.status == Status.UNKNOWN
    transitions.apply(
        intent.pk,
        expected=Status(intent.status),
        to=Status.SUBMITTED,
        actor=Actor.WORKER,
        actor_id=f"worker:{worker_id()}",
        reason=Reason.REPLAYED if replay else Reason.CLAIMED,
        evidence=[request],
        now=now,
        fence=intent.fence,
        new_fence=attempt.fence,
        lease_until=lease,
        first_maybe_sent_at=intent.first_maybe_sent_at or now,
    )
    return attempt


def send(claimed: Claimed) -> Came:
    """Looks first, where the connector does, and sends once. Touches no database; runs in a thread."""
    if claimed.look_first and (objection := _look_first(claimed)) is not None:
        return objection
    return transport.send(claimed.call, claimed.limits)


def _look_first(claimed: Claimed) -> Objection | None:
    """What speaks against sending it now. What can't be seen does as well: then it is tried again later."""

    def fetch(call: transport.Call) -> transport.Reply:
        if call.method not in ("GET", "HEAD"):
            raise ValueError(f"a look before sending changes nothing: {call.method}")
        left = claimed.look_until - transport.boot_clock()
        if left <= 0:
            raise LookupFailed("deadline", "there was no time left for it")
        return transport.send(call, replace(claimed.limits, deadline_s=left, send_by=None))

    connector = cast(LooksFirst, registry.get(claimed.connector))
    try:
        message = connector.object_to(claimed.target, claimed.wanted, fetch)
    except LookupFailed as failed:
        return Objection("not_checked_first", f"{failed.reason}: {failed.message}")
    except Exception as bug:
        log.exception("connector %s can't look before sending", claimed.connector)
        return Objection("not_checked_first", repr(bug))
    return Objection("person_first", message) if message else None


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
            holding.hold(intent, actor=Actor.WORKER, actor_id=actor_id, now=now, why="objected", evidence=[seen])
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


def run(*, budget_s: float, slots: int | None = None) -> int:
    """Claims and sends until nothing is due; stops claiming after `budget_s` seconds. Returns how many."""
    return loop.run(
        claim=lambda free: claim(slots=free),
        work=send,
        save=save_until_saved,
        slots=slots or settings.LANDED_SEND_SLOTS,
        budget_s=budget_s,
    )
