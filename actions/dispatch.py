"""Claim, send, save: three functions, so that a simulator can step them, and the loop that a job runs.

What is claimed is committed before the first byte leaves. Threads send; only the calling thread touches the
database. If saving an answer fails, saving is tried again, never the sending.
"""

from django.conf import settings

from actions import loop
from actions.claiming import anything_due, claim, due
from actions.handing import Came, Claimed, Objection, target_of, wanted_of, worker_id
from actions.saving import save, save_until_saved
from actions.sending import send

__all__ = [
    "Came",
    "Claimed",
    "Objection",
    "anything_due",
    "claim",
    "due",
    "run",
    "save",
    "save_until_saved",
    "send",
    "target_of",
    "wanted_of",
    "worker_id",
]


def run(*, budget_s: float, slots: int | None = None) -> int:
    """Claims and sends until nothing is due; stops claiming after `budget_s` seconds. Returns how many."""
    return loop.run(
        claim=lambda free: claim(slots=free),
        work=send,
        save=save_until_saved,
        slots=slots or settings.LANDED_SEND_SLOTS,
        budget_s=budget_s,
    )
