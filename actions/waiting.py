"""Holding an answer until an intent moves, without a database connection or a transaction held meanwhile."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection

from actions.models import Intent

LONGEST_S: Final = 30
# Between two looks, in seconds: the first ones sooner, because most things are over at once.
_PAUSES_S: Final = (0.1, 0.15)
_PAUSE_S: Final = 0.25

_lock = threading.Lock()
_waiting = 0


@contextmanager
def place() -> Iterator[bool]:
    """One of this process's places to wait (LANDED_WAITERS); False when all are taken, without waiting for one.

    A waiting request keeps a web thread, and the threads are for everybody.
    """
    taken = _take()
    try:
        yield taken
    finally:
        if taken:
            _give_back()


def _take() -> bool:
    global _waiting  # noqa: PLW0603  a semaphore whose size is a setting
    with _lock:
        if _waiting >= settings.LANDED_WAITERS:
            return False
        _waiting += 1
        return True


def _give_back() -> None:
    global _waiting  # noqa: PLW0603  the same
    with _lock:
        _waiting -= 1


Seen = tuple[int, datetime]


def until_moved(intent_id: UUID, before: Seen, *, until: float) -> bool:
    """Looks about four times a second until it is no more as `before`; False when `until` (monotonic) is over."""
    return until_true(lambda: seen_of(intent_id) != before, until=until)


def until_true(look: Callable[[], bool], *, until: float) -> bool:
    """The same for anything that one or two cheap queries can tell."""
    pauses = iter(_PAUSES_S)
    while (left := until - time.monotonic()) > 0:
        _let_go()
        time.sleep(min(left, next(pauses, _PAUSE_S)))
        if look():
            return True
    return False


def seen_of(intent_id: UUID) -> Seen | None:
    """What moves when an intent does: one row by its key, two columns."""
    return Intent.objects.filter(pk=intent_id).values_list("version", "updated_at").first()


def _let_go() -> None:
    """Closes this thread's connection, which the next query opens again: thirty seconds of sleep need none."""
    if not connection.in_atomic_block:
        connection.close()
