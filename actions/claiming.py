"""Claims what may be sent: in one short transaction that is committed before the first byte leaves."""

import logging
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Count, Q

from actions import (
    attempts,
    breakers,
    evidence,
    history,
    holding,
    places,
    policy,
    replays,
    stops,
    subjects,
    times,
    transitions,
    transport,
)
from actions.connectors import registry
from actions.connectors.base import (
    NotSendable,
    Target,
    redact_call,
)
from actions.handing import Claimed, target_of, wanted_of, worker_id
from actions.locking import for_change
from actions.models import Attempt, Downstream, EvidenceKind, Executor, Intent, Line, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status

log = logging.getLogger(__name__)

# When an intent that can't be sent for a reason of ours is tried again, in seconds.
_PUT_OFF_S = 30


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
        free, broken = places.free(
            Intent.objects.filter(due(now)).values("downstream_id"),
            Line.SENDING,
            most=lambda row: row.max_concurrency,
            busy=lambda rows: _sending(rows, now),
            now=now,
        )
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
            if free[intent.downstream_id] > 0 and (one := _claim_or_put_off(intent, now, started)) is not None:
                free[intent.downstream_id] -= 1
                claimed.append(one)
                if intent.downstream_id in broken:
                    lease = timedelta(milliseconds=intent.downstream.deadline_ms + intent.downstream.lease_margin_ms)
                    breakers.took_probe(intent.downstream_id, Line.SENDING, now=now, at_least=lease)
    return claimed


def _sending(rows: list[Downstream], now: datetime) -> Mapping[int, int]:
    """How many sendings are under way at each."""
    open_ = Attempt.objects.filter(
        closed_at__isnull=True, lease_until__gt=now, executor=Executor.LANDED, intent__downstream__in=rows
    )
    return dict(open_.values_list("intent__downstream_id").annotate(Count("pk")))


def _ready(
    now: datetime, free: Mapping[int, int], broken: Collection[int], slots: int
) -> list[tuple[UUID, int, str]]:
    """At most `slots` of what may be sent, oldest first: id, kind and family.

    Asked for each downstream by itself: a full one, with thousands waiting, keeps no other from its turn.
    """
    ready: list[Any] = []  # (due at, id, kind, family)
    for pk, room in free.items():
        # The best probe is one whose outcome is unknown already: it can't become one unknown more.
        order = ("-status", "next_attempt_at", "id") if pk in broken else ("next_attempt_at", "id")
        mine = Intent.objects.filter(due(now), downstream_id=pk).order_by(*order)
        ready += mine.values_list("next_attempt_at", "pk", "kind_id", "family")[: min(room, slots)]
    return [(pk, kind_id, family) for _, pk, kind_id, family in sorted(ready)[:slots]]


def _claim_or_put_off(intent: Intent, now: datetime, started: float) -> Claimed | None:
    """A bad row costs itself only: what can't be claimed keeps no other from being sent."""
    try:
        with transaction.atomic():
            return _claim_one(intent, now, started)
    except (OperationalError, InterfaceError):
        raise  # the database is away, for every row
    except Exception:
        log.exception("intent %s can't be claimed", intent.pk)
        transitions.note(intent.pk, now=now, next_attempt_at=now + timedelta(seconds=_PUT_OFF_S))
        return None


def _claim_one(intent: Intent, now: datetime, started: float) -> Claimed | None:
    down = intent.downstream
    replay = intent.status == Status.UNKNOWN
    until = _send_until(intent, replay=replay)
    target = target_of(down)
    if down.secret_env and target.secret is None:
        _put_off(intent, f"the environment variable {down.secret_env} is not set here", now)
        return None
    if replay and not _may_be_sent_again(intent, until, now):
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


def _may_be_sent_again(intent: Intent, until: datetime | None, now: datetime) -> bool:
    if intent.attempts.filter(closed_at__isnull=True).exists():
        # It became unknown while it was being sent: whoever sends it says first how that ended.
        _put_off(intent, "an attempt is open", now)
        return False
    if until is None or until <= now:
        _leave_unknown(intent, "the key's window is over", now)
        return False
    return True


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
    return subjects.any_disputed(intent.kind_id, intent.subject, besides=intent.pk)


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
