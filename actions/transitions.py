"""The one writer of `Intent.status`.

Every change is one conditional UPDATE (id, expected status, fence, version) with its `Transition` row, and the event
that tells of it, in the same database transaction; whoever comes second changes nothing and is told so.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from actions import events, history, hooks, policy, times
from actions.errors import ForbiddenTransition, StaleTransition
from actions.locking import for_change
from actions.models import Evidence, Intent, SettledBy, Transition
from actions.statuses import SETTLED, Actor, Status, may


def create(intent: Intent, *, to: Status, actor: Actor, actor_id: str, reason: str, now: datetime) -> Intent:
    """Inserts a new intent in status `to` together with its first transition. Joins an open transaction.

    Raises ForbiddenTransition when the table doesn't let `actor` begin there.
    """
    if not may(actor, None, to):
        raise ForbiddenTransition(from_status=None, to_status=to.value)
    intent.status, intent.status_reason, intent.status_since = to, reason, now
    intent.version, intent.created_at, intent.updated_at = 1, now, now
    row = Transition(
        intent=intent, sequence=1, from_status="", to_status=to, actor=actor, actor_id=actor_id, reason=reason
    )
    row.facts = history.facts_of(intent)
    history.link(row, length=0, head=history.genesis(intent), at=now)
    intent.chain_length, intent.chain_head = row.position, row.digest
    with transaction.atomic():
        intent.save(force_insert=True)
        row.save(force_insert=True)
        events.of_transition(intent, row)
        hooks.tell_transition(intent, row)
    return intent


def apply(
    intent_id: UUID,
    *,
    expected: Status | Iterable[Status],
    to: Status,
    actor: Actor,
    actor_id: str,
    reason: str,
    evidence: Iterable[Evidence] = (),
    fence: int | None = None,
    new_fence: int | None = None,
    version: int | None = None,
    now: datetime | None = None,
    **columns: Any,
) -> Intent:
    """Moves an intent to `to` and writes its history; returns it as it is then.

    `expected`: the status (or statuses) that it must be in now; `fence` and `version`, when given, must be its
    current ones; `new_fence`: what a claim sets it to; `reason`: a code of `actions.reasons`; `columns`: others
    that change in the same UPDATE.

    Raises:
        StaleTransition: it is in another status, or has another fence or version. Nothing was changed.
        ForbiddenTransition: the status table doesn't let `actor` do this.
    """
    allowed = {expected} if isinstance(expected, Status) else set(expected)
    with transaction.atomic():
        intent = for_change(Intent).select_related("policy").get(pk=intent_id)
        before = Status(intent.status)
        if (
            before not in allowed
            or (fence is not None and intent.fence != fence)
            or (version is not None and intent.version != version)
        ):
            raise StaleTransition(status=intent.status)
        if not may(actor, before, to):
            raise ForbiddenTransition(from_status=before.value, to_status=to.value)
        at = now or times.now()
        row = Transition(
            intent=intent,
            sequence=intent.version + 1,
            from_status=before,
            to_status=to,
            actor=actor,
            actor_id=actor_id,
            reason=reason,
            evidence=history.refs(evidence),
        )
        still = Q(status=before, fence=intent.fence, version=intent.version)
        changes: dict[str, Any] = _what_follows(intent, to, at) | columns
        if new_fence is not None:
            changes["fence"] = new_fence
        for name, value in changes.items():
            setattr(intent, name, value)
        row.facts = history.facts_of(intent)
        history.link(row, length=intent.chain_length, head=intent.chain_head, at=at)
        changes |= {
            "status": to,
            "status_reason": reason,
            "status_since": at,
            "updated_at": at,
            "version": row.sequence,
            "chain_length": row.position,
            "chain_head": row.digest,
        }
        _update(intent, changes, still)
        row.save(force_insert=True)
        events.of_transition(intent, row)
        hooks.tell_transition(intent, row)
    return intent


def _update(intent: Intent, changes: dict[str, Any], still: Q) -> None:
    changed = Intent.objects.filter(still, pk=intent.pk).update(**changes)
    if changed != 1:
        raise StaleTransition(status=intent.status)
    for name, value in changes.items():
        setattr(intent, name, value)


# What was due in one status is not due in the next, unless whoever moves it says so.
_DUE_TIMES = ("lease_until", "next_attempt_at", "next_check_at", "approve_before")


def _what_follows(intent: Intent, to: Status, at: datetime) -> dict[str, Any]:
    """The columns that a status brings along, unless the caller names others."""
    changes: dict[str, Any] = dict.fromkeys(_DUE_TIMES)
    if to in SETTLED:
        changes["settled_at"] = at
        if not intent.disputed:
            changes["guard_key"] = None
        if to is Status.CANCELLED:
            changes["settled_by"] = SettledBy.NOTHING_SENT
    if to is Status.UNKNOWN:
        # Nothing ends in silence: an unknown is looked up, or (no look-up) the listener opens a review.
        rules = policy.read(intent.policy.text)
        changes["checks_made"] = 0
        if policy.can_look_up(rules):
            planned = at + timedelta(seconds=policy.check_delay_s(rules, 0))
            # A look that somebody asked for while it was being sent stays asked for.
            changes["next_check_at"] = min(planned, intent.next_check_at or planned)
    return changes


def note(intent_id: UUID, *, fence: int | None = None, now: datetime | None = None, **columns: Any) -> bool:
    """Changes columns that are not the status: leases, due times, marks. False: the fence has moved on.

    Not history: what must be remembered is a transition, a check, a decision or evidence.
    """
    if written := {"status", "version", "chain_head", "chain_length"} & set(columns):
        raise ValueError(f"{', '.join(sorted(written))}: history has one writer, apply()")
    found = Intent.objects.filter(pk=intent_id)
    if fence is not None:
        found = found.filter(fence=fence)
    return found.update(updated_at=now or times.now(), **columns) == 1
