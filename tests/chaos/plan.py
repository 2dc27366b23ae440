"""What one run is to be, and the times and limits that all of it agrees on."""

from dataclasses import dataclass
from typing import Literal

Database = Literal["postgresql", "sqlite"]

# Of an attempt, in seconds. Short, so that a minute is enough for whole cycles. The margin is for machines that are
# busy otherwise: what is not on its way within four fifths of it is not sent, and tried again later and later.
DEADLINE_S, MARGIN_S = 1.5, 4.0
LEASE_S = DEADLINE_S + MARGIN_S
LAG_S = 1
UNDO_S = 2
REVIEW_AFTER_S = 12
# A check whose worker was killed is due again after twice the deadline and half a minute (checks._CLAIM_MARGIN_S); a
# third of that more for a machine that is busy otherwise. Everything is settled or in review by then.
QUIET_S = 120
# Above the first a person approves before it is sent, above the second a person decides what came of it, and above
# the third two people agree. In minor units of any of the currencies.
REVIEW_ABOVE, APPROVE_ABOVE, TWO_ABOVE = 30_000, 60_000, 90_000
CURRENCIES = ("EUR", "USD", "CHF")


@dataclass(frozen=True)
class Plan:
    """`seconds`: of noise at least; `intents`: paced so that there are so many then; `at_least`: noise goes on until
    there are so many, and fewer is a failure; `seed`: of faults and load."""

    seconds: float
    database: Database
    seed: int
    intents: int
    at_least: int
    threads: int = 12

    @property
    def webs(self) -> int:
        """SQLite is for one web process."""
        return 2 if self.database == "postgresql" else 1

    @property
    def latest(self) -> float:
        """So many seconds noise lasts at the most, while something is still missing: two cores answer to about a
        thousand intents a minute."""
        return self.seconds * 4
