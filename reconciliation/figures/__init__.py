"""The desk's few figures, each one query or two over what is open or over a bounded time. They change nothing.

The same question has the same answer on every database: percentiles are computed here, exactly, from rows.
"""

from collections.abc import Sequence
from datetime import timedelta


def percentile(spans: Sequence[timedelta], share: int) -> timedelta | None:
    """The nearest rank: the smallest of `spans` that at least `share` per cent of them don't exceed; None of none.

    A value that occurred, no interpolation: 50 of [1, 2, 3, 4] is 2.
    """
    if not spans:
        return None
    rank = -(-len(spans) * share // 100)
    return sorted(spans)[max(rank, 1) - 1]
