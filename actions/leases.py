"""Until when a caller may send what it claimed. Pure.

A lease never outlives what sending rests on: the intent's own `send_before`, and the time for which the downstream
dedupes its key.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

# Seconds that a caller may ask for: long enough to send something, short enough that a dead process is noticed.
SHORTEST_S: Final = 5
LONGEST_S: Final = 900


def lease_until(
    *, now: datetime, lease_s: int | None, deadline_ms: int, margin_ms: int, ends: Iterable[datetime | None]
) -> datetime:
    """`lease_s` (seconds; None: the downstream's deadline and margin) from now, and not past any of `ends`."""
    wanted = timedelta(milliseconds=deadline_ms + margin_ms) if lease_s is None else timedelta(seconds=lease_s)
    return min([now + wanted, *(end for end in ends if end is not None)])
