"""Claim, send, save: three functions, so that a simulator can step them, and the loop that a job runs.

What is claimed is committed before the first byte leaves. Threads send; only the calling thread touches the
database. If saving an answer fails, saving is tried again, never the sending.
"""

from django.conf import settings

from actions import loop, stops
from actions.claiming import anything_due, claim, due
from actions.handing import Came, Claimed, Objection, target_of, wanted_of, worker_id
from actions.models import Intent
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


def _claim(slots: int) -> list[Claimed]:
    """Claims, and gives back unsent what a stop that was placed at the same moment concerns."""
    claimed = claim(slots=slots)
    if not claimed or not stops.placed_lately():
        return claimed
    return [one for one in claimed if not _stopped(one)]


def _stopped(claimed: Claimed) -> bool:
    intent = Intent.objects.get(pk=claimed.intent_id)
    if not stops.of_intent(intent):
        return False
    save_until_saved(claimed, Objection("person_first", "It was stopped as it was claimed.", why="stopped"))
    return True


def run(*, budget_s: float, slots: int | None = None) -> int:
    """Claims and sends until nothing is due; stops claiming after `budget_s` seconds. Returns how many."""
    return loop.run(
        claim=_claim,
        work=send,
        save=save_until_saved,
        slots=slots or settings.LANDED_SEND_SLOTS,
        budget_s=budget_s,
    )
