"""How much an agent may ask for in a minute, over all web processes.

The count is in the database, and each process takes it in portions, which it gives out from memory: of one at
first, and the larger the faster they go, up to a twentieth of the minute's allowance. So the limit holds over any
number of processes, and under load most requests cost no query. See docs/decisions/0008.

Counted is over a sliding minute: the current minute, and as much of the one before as the last sixty seconds still
cover.
"""

import math
import threading
import time
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from django.db import transaction

from actions import times
from actions.errors import RateLimited
from actions.locking import for_change
from actions.models import Agent, Usage

_MINUTE_S: Final = 60
_PORTIONS: Final = 20
# What a process took and did not give out is not kept for a quieter time.
_PORTION_FOR_S: Final = 10.0
# A portion that was used up sooner than this is followed by one twice as large.
_FAST_S: Final = 2.0
# Whoever is refused and asks again at once is refused from memory, for so long at most.
_REFUSED_FOR_S: Final = 1.0


class Bucket(StrEnum):
    """`propose`: POST /intents, replays included. `other`: everything else that a token asks for."""

    PROPOSE = "propose"
    OTHER = "other"


# Following up on what was proposed (reading, claiming, reporting) must not be cut off by having proposed it.
_TIMES: Final = {Bucket.PROPOSE: 1, Bucket.OTHER: 10}


@dataclass
class _Portion:
    """What this process may still give out; or, with `wait_s`, that the next one is refused."""

    left: int
    until: float
    wait_s: int = 0
    size: int = 0
    taken_at: float = 0.0


# By the name as well: a number may be given twice where rows can go.
_Key = tuple[int, str, Bucket]
_lock = threading.Lock()
_portions: dict[_Key, _Portion] = {}
_fetchers: dict[_Key, threading.Lock] = {}


def limit_of(agent: Agent, bucket: Bucket) -> int:
    return agent.rate_per_minute * _TIMES[bucket]


def take(agent: Agent, bucket: Bucket) -> None:
    """Counts one request. Raises RateLimited, with `retry_after` in seconds, when the agent has used its minute."""
    key = (agent.pk, agent.name, bucket)
    if _from_memory(key):
        return
    # One at a time fetches: of fifty requests at once the others live on what the first one brought.
    with _fetching(key):
        if _from_memory(key):
            return
        limit = limit_of(agent, bucket)
        wanted = _next_size(key, most=max(1, limit // _PORTIONS))
        got, wait_s = _reserve(agent, bucket, limit=limit, wanted=wanted)
        _remember(key, got, wait_s)
    if not got:
        raise _refusal(wait_s)


def _fetching(key: _Key) -> threading.Lock:
    with _lock:
        return _fetchers.setdefault(key, threading.Lock())


def _next_size(key: _Key, *, most: int) -> int:
    with _lock:
        last = _portions.get(key)
        fast = last is not None and last.size and time.monotonic() - last.taken_at < _FAST_S
        return min(most, 2 * last.size) if last is not None and fast else 1


def _remember(key: _Key, got: int, wait_s: int) -> None:
    now = time.monotonic()
    with _lock:
        _portions[key] = (
            _Portion(got - 1, now + _PORTION_FOR_S, size=got, taken_at=now)
            if got
            else _Portion(0, now + min(wait_s, _REFUSED_FOR_S), wait_s)
        )


def _from_memory(key: _Key) -> bool:
    with _lock:
        portion = _portions.get(key)
        if portion is None or portion.until <= time.monotonic():
            return False
        if portion.wait_s:
            raise _refusal(portion.wait_s)
        if not portion.left:
            return False
        portion.left -= 1
        return True


def _refusal(wait_s: int) -> RateLimited:
    return RateLimited(f"This agent has used up its minute; ask again in {wait_s} s.", retry_after=wait_s)


def left(agent: Agent, bucket: Bucket) -> int:
    """How many requests are left now, as far as this process knows. Counts nothing."""
    limit = limit_of(agent, bucket)
    now = times.now()
    row = Usage.objects.filter(agent=agent, bucket=bucket).first()
    free = limit if row is None else int(limit - _used(_moved_on(row, now), now))
    with _lock:
        portion = _portions.get((agent.pk, agent.name, bucket))
        mine = portion.left if portion is not None and portion.until > time.monotonic() else 0
    return min(limit, max(0, free) + mine)


def forget() -> None:
    """Drops what this process took; for tests."""
    with _lock:
        _portions.clear()


def _reserve(agent: Agent, bucket: Bucket, *, limit: int, wanted: int) -> tuple[int, int]:
    """Takes at most `wanted` from the shared count; how many it got, and for none how long to wait, in seconds."""
    with transaction.atomic():
        now = times.now()
        row = for_change(Usage).filter(agent=agent, bucket=bucket).first()
        if row is None:
            # Somebody else may insert it first; either way it is there and locked now.
            Usage.objects.bulk_create([Usage(agent=agent, bucket=bucket, since=now)], ignore_conflicts=True)
            row = for_change(Usage).get(agent=agent, bucket=bucket)
        _moved_on(row, now)
        got = min(wanted, int(limit - _used(row, now)))
        if got < 1:
            return 0, _wait_s(row, now, limit)
        row.count += got
        row.save(update_fields=["since", "count", "count_before"])
        return got, 0


def _moved_on(row: Usage, now: datetime) -> Usage:
    """The row as it stands in the minute that holds `now`."""
    passed = math.floor((now - row.since).total_seconds() / _MINUTE_S)
    if passed >= 1:
        row.count_before = row.count if passed == 1 else 0
        row.count = 0
        row.since += timedelta(seconds=passed * _MINUTE_S)
    return row


def _used(row: Usage, now: datetime) -> float:
    gone = (now - row.since).total_seconds() / _MINUTE_S
    return row.count + row.count_before * (1 - min(1.0, max(0.0, gone)))


def _wait_s(row: Usage, now: datetime, limit: int) -> int:
    """Whole seconds until one more fits, if nobody else takes it."""
    gone_s = (now - row.since).total_seconds()
    room = limit - 1 - row.count
    if room >= 0 and row.count_before:
        at_s = _MINUTE_S * (1 - room / row.count_before)
    else:
        # Not in this minute: in the next one this minute's count fades.
        at_s = _MINUTE_S + _MINUTE_S * (1 - (limit - 1) / max(1, row.count))
    return max(1, math.ceil(at_s - gone_s))
