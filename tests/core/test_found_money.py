"""Found: Babel's decimals are CLDR's, which say how prices are shown, not what a minor unit is (ISO 4217)."""

import pytest

from actions import money

# ISO 4217, list one (SIX), where CLDR says otherwise; payment services count in these.
ISO = {"HUF": 2, "IDR": 2, "COP": 2, "ALL": 2, "AFN": 2, "IQD": 3, "IRR": 2, "LBP": 2, "MGA": 2, "MMK": 2, "YER": 2}


@pytest.mark.parametrize(("currency", "decimals"), ISO.items())
def test_minor_units_are_those_of_iso_4217(currency: str, decimals: int) -> None:
    """5000 HUF sent as 5000 minor units is 50.00 HUF to whoever counts by ISO 4217: a hundredth."""
    assert money.exponent(currency) == decimals


@pytest.mark.parametrize("currency", ["DEM", "ITL", "SUR"])
def test_a_currency_that_is_no_longer_one_is_refused(currency: str) -> None:
    with pytest.raises(money.BadAmount):
        money.exponent(currency)
