"""How much is at stake in a case, comparable across kinds and currencies: a multiple of the kind's review limit."""

from collections.abc import Mapping, Sequence

from actions import policy
from actions.models import Intent, Kind
from reconciliation.models import LedgerEntry

# What an amount just at the review limit is worth.
LIMIT = 1_000
# What an amount is worth that nobody has set a limit for: more than the limit, as wherever limits count.
ABOVE = LIMIT + 1
# A bigger multiple sorts no differently.
_MOST = 10**12


def of(intent: Intent) -> int:
    """The amount in thousandths of the review limit for its currency: 1,000 where that has no limit, 1,001 in a
    currency that its kind does not list, 0 without an amount."""
    return _against([policy.read(intent.policy.text).limits], intent.currency, intent.amount_minor)


def of_entry(entry: LedgerEntry) -> int:
    """The same for an entry that no intent explains, by the strictest kind of its downstream: it may be any of them,
    as it is due when the most urgent one would be."""
    kinds = Kind.objects.filter(downstream=entry.downstream_id).values_list("limits", flat=True)
    return _against(list(kinds), entry.currency, entry.amount_minor)


def _against(
    limits: Sequence[Mapping[str, Mapping[str, int | None]]], currency: str, amount_minor: int | None
) -> int:
    """By the lowest limit of those that list the currency."""
    if amount_minor is None:
        return 0
    listed = [found[currency].get("review_above") for found in limits if currency in found]
    if not listed:
        return ABOVE
    known = [limit for limit in listed if limit is not None]
    return min(abs(amount_minor) * LIMIT // max(min(known), 1), _MOST) if known else LIMIT
