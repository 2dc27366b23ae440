"""One pass of delivering. The clock runs it in a thread of its own: a receiver that hangs delays no sweep."""

import threading
import time
from typing import Final

from django.conf import settings

from actions import loop
from actions.notifying import claiming, planning, posting, saving
from actions.notifying.claiming import Claimed

# While deliveries are under way, as often as that it is looked for what happened since; in seconds.
_PLAN_S: Final = 1.0


def deliver_due(budget_s: float = 10.0, *, stop: threading.Event | None = None) -> int:
    """Plans and delivers until nothing is due, or the budget (seconds) is used. Returns how many were tried.

    `stop`: once it is set, nothing new is begun.
    """
    planned = time.monotonic()
    planning.plan()

    def claim(free: int) -> list[Claimed]:
        nonlocal planned
        if stop is not None and stop.is_set():
            return []
        if time.monotonic() - planned >= _PLAN_S:
            # What happened since: a receiver that takes its time must not keep it from the others.
            planned = time.monotonic()
            planning.plan()
        return claiming.claim(free)

    return loop.run(
        claim=claim,
        work=posting.post,
        save=saving.save,
        slots=settings.LANDED_DELIVERY_SLOTS,
        budget_s=budget_s,
    )
