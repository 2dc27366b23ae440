"""What is due or stuck here. The clock runs it; any number of clocks at once equals one.

Every change is a transition with its own condition, so a pass that comes second finds nothing left to do.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Exists, OuterRef, Q

from actions import dispatch, outcomes, positions, times, transitions
from actions.errors import StaleTransition
from actions.in_words import status_in
from actions.locking import for_change
from actions.models import Attempt, ClosedBy, Intent, Result, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status

log = logging.getLogger(__name__)

# How many of a sort one pass takes on; the next pass is a second away.
BATCH = 500


@dataclass(frozen=True)
class Swept:
    """How many rows a pass changed, and whether there is work for the workers."""

    changed: int = 0
    due_to_send: bool = False
    due_to_check: bool = False


def clock_id() -> str:
    return f"clock:{dispatch.worker_id()}"


def sweep() -> Swept:
    """One pass: ends leases, cancels what may no longer be sent, and says whether something is due."""
    now = times.now()
    changed = sum(
        (
            _each(_ids(Q(lease_until__lt=now, status=Status.SUBMITTED), "lease_until"), _expire_lease, now),
            _each(_ids(_overdue(now), "send_before"), _cancel_overdue, now),
            _each(_ids(Q(approve_before__lt=now, status=Status.HELD), "approve_before"), _expire_approval, now),
        )
    )
    changed += _close_attempts(now) + _drop_replays(now)
    # Not counted: it changes nothing but the order in which events are read.
    positions.stamp()
    return Swept(changed=changed, due_to_send=dispatch.anything_due(now))


def _overdue(now: datetime) -> Q:
    return Q(status_in(Status.HELD, Status.RECORDED), send_before__lt=now)


def _ids(condition: Q, order: str) -> Iterable[UUID]:
    return list(Intent.objects.filter(condition).order_by(order).values_list("pk", flat=True)[:BATCH])


def _each(ids: Iterable[UUID], act: Callable[[UUID, datetime], object], now: datetime) -> int:
    """Acts on each in a transaction of its own. Somebody faster is no error; one bad row stops no other."""
    changed = 0
    for intent_id in ids:
        try:
            with transaction.atomic():
                act(intent_id, now)
            changed += 1
        except StaleTransition:
            continue
        except (OperationalError, InterfaceError):
            raise  # the database is away, for every row
        except Exception:
            log.exception("the sweep can't handle intent %s", intent_id)
    return changed


def _expire_lease(intent_id: UUID, now: datetime) -> None:
    # Read again under the lock: it may have been renewed since the list was made.
    intent = for_change(Intent).get(pk=intent_id)
    if intent.lease_until is None or intent.lease_until >= now:
        raise StaleTransition(status=intent.status)
    outcomes.expire_lease(intent_id, now=now, clock_id=clock_id())


def _cancel_overdue(intent_id: UUID, now: datetime) -> None:
    intent = for_change(Intent).get(pk=intent_id)
    if intent.status not in (Status.HELD, Status.RECORDED):
        raise StaleTransition(status=intent.status)
    # What somebody else says was not sent or processed rests on their word: it ends as failed, not as never sent.
    by_word = intent.status == Status.RECORDED and not outcomes.proven_unsent(intent)
    transitions.apply(
        intent_id,
        expected=Status(intent.status),
        to=Status.FAILED if by_word else Status.CANCELLED,
        actor=Actor.CLOCK,
        actor_id=clock_id(),
        reason=Reason.EXPIRED,
        now=now,
        settled_by=SettledBy.ANSWER if by_word else SettledBy.NOTHING_SENT,
    )


def _close_attempts(now: datetime) -> int:
    """Attempts whose intent moved on without them (a person asked early): their lease is over, so they are closed."""
    # By the open attempts, not by the intents that are no longer submitted, which are nearly all.
    waits = Intent.objects.filter(pk=OuterRef("intent"), status=Status.SUBMITTED)
    left = Attempt.objects.filter(~Exists(waits), closed_at__isnull=True, lease_until__lt=now)
    return left.update(closed_at=now, closed_by=ClosedBy.CLOCK, result=Result.NO_ANSWER, reason="lease_over")


def _drop_replays(now: datetime) -> int:
    """Whoever withdraws the promise that a downstream dedupes withdraws it for what is unknown then: given again, it
    says nothing about keys that were sent meanwhile. And what may not be sent any more is planned no longer: while it
    waits for that, nobody is asked."""
    planned = Intent.objects.filter(
        Q(downstream__dedupes=False) | Q(send_before__lte=now), next_attempt_at__isnull=False, status=Status.UNKNOWN
    )
    ids = list(planned.order_by("next_attempt_at").values_list("pk", flat=True)[:BATCH])
    return sum(transitions.note(pk, now=now, next_attempt_at=None) for pk in ids)


def _expire_approval(intent_id: UUID, now: datetime) -> None:
    transitions.apply(
        intent_id,
        expected=Status.HELD,
        to=Status.CANCELLED,
        actor=Actor.CLOCK,
        actor_id=clock_id(),
        reason=Reason.APPROVAL_EXPIRED,
        now=now,
    )
