"""What holds for every connector, built in or installed: plain functions that assert it. Pure.

A package runs them in its own tests, after it is installed (`pip install -e .` is enough):

    @pytest.mark.parametrize("holds", contract.CHECKS, ids=contract.name_of)
    def test_it_keeps_the_contract(holds):
        holds(registry.get("my_connector"))

Everything is judged on the connector's own `example`. Nothing here needs a network, a database or Django. A connector
that looks first, looks back, or hears webhooks, is held to that as well; for others those checks have nothing to ask.
"""

from __future__ import annotations

from typing import Final

from actions.connectors.contract import core, optional
from actions.connectors.contract.asking import Check

CHECKS: Final[tuple[Check, ...]] = (*core.CHECKS, *optional.CHECKS)


def name_of(check: Check) -> str:
    """For pytest's `ids`."""
    return str(getattr(check, "__name__", "check"))
