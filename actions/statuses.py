"""The statuses of an intent and who may move it from one to another. The one place where either is written down.

CHECK constraints, admin choices, page buttons, the API's hints, the documents' diagram and the tests are all
derived from here. Pure: no models, no I/O.
"""

from typing import Final

from django.db.models import TextChoices


class Status(TextChoices):
    HELD = "held", "held"
    RECORDED = "recorded", "recorded"
    SUBMITTED = "submitted", "submitted"
    UNKNOWN = "unknown", "unknown"
    CONFIRMED = "confirmed", "confirmed"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


class Actor(TextChoices):
    """In which role somebody or something acts; the row beside it says who exactly."""

    AGENT = "agent", "agent"
    APPLICATION = "application", "application"
    CALLER = "caller", "caller"  # whoever carries out an intent themselves and reports on it
    WORKER = "worker", "worker"
    CHECKER = "checker", "checker"
    CLOCK = "clock", "clock"
    REVIEWER = "reviewer", "reviewer"
    ADMINISTRATOR = "administrator", "administrator"


SETTLED: Final = frozenset({Status.CONFIRMED, Status.FAILED, Status.CANCELLED})
UNSETTLED: Final = frozenset(Status) - SETTLED
# What uses up an agent's limits: everything but what is known to have no effect.
COUNTED: Final = UNSETTLED | {Status.CONFIRMED}
# Nothing was sent in these, or everything that was sent is proven not to have arrived.
NOT_SENT: Final = frozenset({Status.HELD, Status.RECORDED, Status.CANCELLED})

_PROPOSERS = frozenset({Actor.AGENT, Actor.APPLICATION})
_WITHDRAWERS = _PROPOSERS | {Actor.REVIEWER, Actor.CLOCK}
_OVERRIDERS = frozenset({Actor.REVIEWER, Actor.ADMINISTRATOR})

TRANSITIONS: Final[dict[tuple[Status | None, Status], frozenset[Actor]]] = {
    (None, Status.RECORDED): _PROPOSERS,
    (None, Status.HELD): _PROPOSERS,
    (None, Status.SUBMITTED): _PROPOSERS,
    (Status.HELD, Status.RECORDED): frozenset({Actor.REVIEWER}),
    (Status.HELD, Status.CANCELLED): _WITHDRAWERS,
    (Status.RECORDED, Status.CANCELLED): _WITHDRAWERS,
    (Status.RECORDED, Status.HELD): frozenset({Actor.CHECKER, Actor.REVIEWER, Actor.WORKER}),
    (Status.RECORDED, Status.SUBMITTED): frozenset({Actor.WORKER, Actor.CALLER}),
    (Status.RECORDED, Status.FAILED): frozenset({Actor.WORKER, Actor.CLOCK}),
    # Somebody said that nothing was sent, and evidence of its own attempt or key says otherwise (decision 7).
    (Status.RECORDED, Status.UNKNOWN): frozenset({Actor.CHECKER}),
    (Status.HELD, Status.UNKNOWN): frozenset({Actor.CHECKER}),
    (Status.SUBMITTED, Status.RECORDED): frozenset({Actor.WORKER, Actor.CALLER}),
    (Status.SUBMITTED, Status.CONFIRMED): frozenset({Actor.WORKER, Actor.CALLER, Actor.CHECKER}),
    (Status.SUBMITTED, Status.FAILED): frozenset({Actor.WORKER, Actor.CALLER, Actor.CHECKER}),
    (Status.SUBMITTED, Status.UNKNOWN): frozenset(
        {Actor.WORKER, Actor.CALLER, Actor.CLOCK, Actor.CHECKER, Actor.REVIEWER}
    ),
    (Status.UNKNOWN, Status.SUBMITTED): frozenset({Actor.WORKER}),
    (Status.UNKNOWN, Status.RECORDED): frozenset({Actor.WORKER, Actor.CALLER}),
    (Status.UNKNOWN, Status.CONFIRMED): frozenset({Actor.CHECKER, Actor.WORKER, Actor.CALLER, Actor.REVIEWER}),
    (Status.UNKNOWN, Status.FAILED): frozenset({Actor.CHECKER, Actor.WORKER, Actor.CALLER, Actor.REVIEWER}),
    (Status.CONFIRMED, Status.FAILED): _OVERRIDERS,
    (Status.FAILED, Status.CONFIRMED): _OVERRIDERS,
    # It stays confirmed, and another ledger entry is what settled it (decision 17).
    (Status.CONFIRMED, Status.CONFIRMED): _OVERRIDERS,
}


def is_settled(status: str) -> bool:
    return status in SETTLED


def may(actor: Actor, from_: Status | None, to: Status) -> bool:
    """Whether `actor` may move an intent from `from_` (None: it doesn't exist yet) to `to`."""
    return actor in TRANSITIONS.get((from_, to), frozenset())
