"""How many things may be asked of each downstream at once, counted over all workers of all hosts."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from actions import breakers
from actions.locking import for_change
from actions.models import Downstream, Line

Busy = Callable[[list[Downstream]], Mapping[int, int]]


def free(
    wanted: QuerySet[Any], line: Line, *, most: Callable[[Downstream], int], busy: Busy, now: datetime
) -> tuple[dict[int, int], set[int]]:
    """Free places per downstream of `wanted` (a query of ids), and which of them are there for a probe only.

    `most`: how many a downstream takes; `busy`: how many each has. Locks those rows, so that claims don't overbook
    them; what others did is read after that, not before.
    """
    # no_key: recording, whose rows refer to the downstream, is not held up by this lock.
    rows = list(for_change(Downstream).filter(pk__in=wanted).order_by("pk"))
    if not rows:
        return {}, set()
    taken, broken = busy(rows), breakers.open_ones(line)
    found = {row.pk: most(row) - taken.get(row.pk, 0) for row in rows}
    for pk, probe_at in broken.items():
        if pk in found:
            found[pk] = min(found[pk], 1 if probe_at <= now else 0)
    return {pk: places for pk, places in found.items() if places > 0}, set(broken)
