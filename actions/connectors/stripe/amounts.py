"""What Stripe counts amounts in, which is not ISO 4217's minor unit everywhere. Pure.

From "Supported currencies": currencies have two decimals unless stated otherwise. HUF and TWD are special for payouts
only.
"""

from __future__ import annotations

from typing import cast

from actions.money import BadAmount, exponent

# "Zero-decimal currencies", without UGX, which "Special cases" takes back.
_NO_DECIMALS = frozenset(
    {"BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF"}
)
# "Special cases": without decimals, and yet 5 ISK are sent as 500. For UGX the page says both; the API itself answers
# that UGX "has become effectively zero-decimal and charged amounts must be evenly divisible by 100".
_ALWAYS_00 = frozenset({"ISK", "UGX"})
# "Three-decimal currencies": the last digit has to be 0.
_LAST_DIGIT_0 = frozenset({"BHD", "JOD", "KWD", "OMR", "TND"})


def to_stripe(minor: int, currency: str) -> int:
    """Our minor units as Stripe counts them. Raises BadAmount for what can't be said to Stripe exactly."""
    ours, theirs = _units(currency)
    amount, rest = divmod(minor * theirs, ours)
    if rest:
        raise BadAmount(f"Stripe takes {currency} in whole units only.")
    if currency in _LAST_DIGIT_0 and amount % 10:
        raise BadAmount(f"Stripe takes {currency} in steps of 0.010 only.")
    return amount


def from_stripe(amount: int, currency: str) -> int:
    """Stripe's amount in our minor units. Raises BadAmount."""
    ours, theirs = _units(currency)
    minor, rest = divmod(amount * ours, theirs)
    if rest:
        raise BadAmount(f"{amount} is no whole amount of {currency}.")
    return minor


def _units(currency: str) -> tuple[int, int]:
    """In how many parts ISO 4217 and Stripe divide `currency`."""
    ours: int = exponent(currency)
    theirs = 0 if currency in _NO_DECIMALS else 3 if currency in _LAST_DIGIT_0 else 2
    if theirs == 2 and ours != 2 and currency not in _ALWAYS_00:
        raise BadAmount(f"Stripe's documentation does not say how it counts {currency}.")
    return cast(int, 10**ours), cast(int, 10**theirs)
