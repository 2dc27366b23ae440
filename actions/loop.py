"""Claim, work in threads, save: the loop that every job runs, whatever it claims.

Only the calling thread touches the database.
"""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

from django.db import DatabaseError, InterfaceError

log = logging.getLogger(__name__)

Claimed = TypeVar("Claimed")
Result = TypeVar("Result")

# Set when this process is to end: what is under way is finished, nothing new is claimed.
stopping = threading.Event()

# How often new work is looked for while some is under way, in seconds.
POLL_S = 0.2


def _save(save: Callable[[Claimed, Result], object], claimed: Claimed, future: Future[Result]) -> None:
    """A fault of ours in one piece of work must not take the others with it: that piece is left to its lease."""
    try:
        save(claimed, future.result())
    except Exception:
        log.exception("left to its lease: %s", claimed)


def run(
    *,
    claim: Callable[[int], list[Claimed]],
    work: Callable[[Claimed], Result],
    save: Callable[[Claimed, Result], object],
    slots: int,
    budget_s: float,
) -> int:
    """Goes on until a claim comes back empty and nothing is under way; stops claiming after `budget_s` seconds.

    `claim(n)` returns at most n pieces; `work` runs in a thread; `save` runs here. Returns how many were claimed.
    An exception from outside (RQ's time-out) leaves what is under way to its lease: nothing is decided about it.
    """
    stop_claiming = time.monotonic() + budget_s
    under_way: dict[Future[Result], Claimed] = {}
    total, failed = 0, None
    pool = ThreadPoolExecutor(slots, thread_name_prefix="landed")
    try:
        while True:
            free = slots - len(under_way)
            may = free and not failed and not stopping.is_set() and time.monotonic() < stop_claiming
            try:
                claimed = claim(free) if may else []
            except (DatabaseError, InterfaceError) as away:
                # The answers under way are not lost with it; they are saved, and saving tries for longer.
                claimed, failed = [], away
                log.warning("claiming failed; what is under way is finished first: %s", away)
            total += len(claimed)
            under_way |= {pool.submit(work, one): one for one in claimed}
            if not under_way:
                if failed:
                    raise failed
                return total
            for future in wait(under_way, timeout=POLL_S, return_when=FIRST_COMPLETED).done:
                _save(save, under_way.pop(future), future)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
