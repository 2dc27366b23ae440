"""How much is at stake in a case, comparable across kinds and currencies: a multiple of the kind's review limit."""

from actions import policy
from actions.models import Intent

# What an amount just at the review limit is worth.
LIMIT = 1_000
# A bigger multiple sorts no differently.
_MOST = 10**12


def of(intent: Intent) -> int:
    """The amount in thousandths of the review limit for its currency; 1,000 where there is no limit to compare with,
    0 without an amount."""
    if intent.amount_minor is None:
        return 0
    limits = policy.limits_for(policy.read(intent.policy.text), intent.currency)
    if limits is None or limits.review_above is None:
        return LIMIT
    return min(intent.amount_minor * LIMIT // max(limits.review_above, 1), _MOST)
