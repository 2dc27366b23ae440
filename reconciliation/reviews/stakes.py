"""How much is at stake in a case, comparable across kinds and currencies: a multiple of the kind's review limit."""

from actions import policy
from actions.models import Intent, Kind
from reconciliation.models import LedgerEntry

# What an amount just at the review limit is worth.
LIMIT = 1_000
# A bigger multiple sorts no differently.
_MOST = 10**12


def of(intent: Intent) -> int:
    """The amount in thousandths of the review limit for its currency; 1,000 where there is no limit to compare with,
    0 without an amount."""
    limits = policy.limits_for(policy.read(intent.policy.text), intent.currency)
    return _against(limits.review_above if limits else None, intent.amount_minor)


def of_entry(entry: LedgerEntry) -> int:
    """The same for an entry that no intent explains, by the strictest kind of its downstream: it may be any of them,
    as it is due when the most urgent one would be."""
    kinds = Kind.objects.filter(downstream=entry.downstream_id).values_list("limits", flat=True)
    limits = [found.get(entry.currency, {}).get("review_above") for found in kinds]
    return _against(min((limit for limit in limits if limit is not None), default=None), entry.amount_minor)


def _against(limit: int | None, amount_minor: int | None) -> int:
    if amount_minor is None:
        return 0
    if limit is None:
        return LIMIT
    return min(abs(amount_minor) * LIMIT // max(limit, 1), _MOST)
