"""A person decides what an entry is that no intent explains: it belongs to an intent, is a duplicate, or is not ours.

The decisions are rows of the case's own chain, because they are about no intent before they take effect. What follows
for an intent is written into its history as well.
"""

from reconciliation.reviews.deciding import Decided
from reconciliation.reviews.orphans.deciding import decide
from reconciliation.reviews.orphans.pending import due, take_effect
from reconciliation.reviews.orphans.planning import (
    CHOICES,
    WORDS,
    Follows,
    Offer,
    Seen,
    blocked,
    find,
    needs_two,
    offers,
    seen,
)

__all__ = [
    "CHOICES",
    "WORDS",
    "Decided",
    "Follows",
    "Offer",
    "Seen",
    "blocked",
    "decide",
    "due",
    "find",
    "needs_two",
    "offers",
    "seen",
    "take_effect",
]
