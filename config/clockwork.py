"""One tick of the clock: sweep both apps, ring for what is due."""

from dataclasses import dataclass

import actions.sweep
import reconciliation.sweep
from actions import jobs


@dataclass(frozen=True)
class Ticked:
    """`actions` and `reconciliation`: rows changed there. `rung`: the queues that a ring was asked for."""

    actions: int
    reconciliation: int
    rung: tuple[str, ...]


def tick() -> Ticked:
    """One pass. Raises what the database raises; a Redis that is away raises nothing."""
    first, second = actions.sweep.sweep(), reconciliation.sweep.sweep()
    rung = []
    if first.due_to_send or second.due_to_send:
        rung.append(jobs.SEND)
    if first.due_to_check or second.due_to_check:
        rung.append(jobs.CHECK)
    for queue in rung:
        jobs.ring(queue)
    return Ticked(actions=first.changed, reconciliation=second.changed, rung=tuple(rung))
