"""Gives events their positions, in the order in which they were committed.

A sequence gives numbers in the order of inserting. Of two transactions the one with the lower number may commit last,
and whoever has read past the higher one would never see it. So an event has no position when it is inserted; this
gives every committed event that lacks one the next positions, one after the other under one lock. Whoever has seen
position N has seen, or can see, everything up to N. See docs/decisions/0018.
"""

from typing import Final

from django.db import connection, transaction
from django.db.models import Max

from actions.models import Event

# Any number, as long as nothing else uses it.
_LOCK: Final = 0x1A4DE0
BATCH: Final = 2_000

# ORDER BY id: events of one transaction keep their order.
_STAMP: Final = """
UPDATE actions_event SET position = given.position
FROM (
    SELECT id, %s + row_number() OVER (ORDER BY id) AS position
    FROM (SELECT id FROM actions_event WHERE position IS NULL ORDER BY id LIMIT %s) AS waiting
) AS given
WHERE actions_event.id = given.id
"""


def stamp() -> int:
    """Gives every event that is committed by now its position; returns how many. One cheap query when there is none.

    Call it outside any transaction: the lock is held until that ends.
    """
    stamped = 0
    while Event.objects.filter(position__isnull=True).exists():
        stamped += (done := _stamp_batch())
        if done < BATCH:
            break
    return stamped


def head() -> int:
    """The highest position; 0 before there is one."""
    return Event.objects.aggregate(head=Max("position"))["head"] or 0


def _stamp_batch() -> int:
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # The immediate transaction is the lock on SQLite. What was committed before this was ours is seen by the
            # statements after it: each sees what was committed when it began (READ COMMITTED).
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
        cursor.execute(_STAMP, [head(), BATCH])
        return int(cursor.rowcount)
