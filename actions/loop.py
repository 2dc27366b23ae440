"""Claim, work in threads, save: the loop that every job runs, whatever it claims.

Only the calling thread touches the database.
"""

import time
from collections.abc import Callable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TypeVar

Claimed = TypeVar("Claimed")
Result = TypeVar("Result")

# How often new work is looked for while some is under way, in seconds.
POLL_S = 0.2


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
    total = 0
    pool = ThreadPoolExecutor(slots, thread_name_prefix="landed")
    try:
        while True:
            free = slots - len(under_way)
            claimed = claim(free) if free and time.monotonic() < stop_claiming else []
            total += len(claimed)
            under_way |= {pool.submit(work, one): one for one in claimed}
            if not under_way:
                return total
            for future in wait(under_way, timeout=POLL_S, return_when=FIRST_COMPLETED).done:
                save(under_way.pop(future), future.result())
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
