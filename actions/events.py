"""Writes events down: one row in the outbox, in the transaction of what it tells of."""

from datetime import datetime

from actions.models import Event, EventType, Intent, Transition
from actions.statuses import SETTLED, Status

_TYPES = {
    Status.RECORDED: EventType.RECORDED,
    Status.HELD: EventType.HELD,
    Status.SUBMITTED: EventType.SUBMITTED,
    Status.UNKNOWN: EventType.UNKNOWN,
    **dict.fromkeys(SETTLED, EventType.SETTLED),
}


def type_of(from_status: str, to: Status) -> EventType:
    """The event of a transition. From one settled status to another: somebody corrected it."""
    return EventType.CORRECTED if from_status in SETTLED else _TYPES[to]


def of_transition(intent: Intent, row: Transition) -> Event:
    """Called by the one writer of status, beside the transition's row."""
    to = Status(row.to_status)
    return _put(intent, type_of(row.from_status, to), at=row.at, sequence=row.sequence, status=to)


def put(intent: Intent, kind: EventType, *, at: datetime, status: str = "") -> Event:
    """An event that is no transition. Call it inside the transaction that changes what it tells of.

    `status`: the intent's, where the event is about that.
    """
    return _put(intent, kind, at=at, status=status)


def _put(intent: Intent, kind: EventType, *, at: datetime, sequence: int | None = None, status: str = "") -> Event:
    return Event.objects.create(
        intent=intent, agent_id=intent.agent_id, type=kind, sequence=sequence, intent_status=status, at=at
    )
