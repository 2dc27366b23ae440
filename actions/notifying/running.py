"""One pass of delivering. The clock runs it in a thread of its own: a receiver that hangs delays no sweep."""

import threading

from django.conf import settings

from actions import loop
from actions.notifying import claiming, planning, posting, saving
from actions.notifying.claiming import Claimed


def deliver_due(budget_s: float = 10.0, *, stop: threading.Event | None = None) -> int:
    """Plans and delivers until nothing is due, or the budget (seconds) is used. Returns how many were tried.

    `stop`: once it is set, nothing new is begun.
    """
    planning.plan()

    def claim(free: int) -> list[Claimed]:
        return [] if stop is not None and stop.is_set() else claiming.claim(free)

    return loop.run(
        claim=claim,
        work=posting.post,
        save=saving.save,
        slots=settings.LANDED_DELIVERY_SLOTS,
        budget_s=budget_s,
    )
