"""That the simulation would find faults: some bugs that it finds soon. `make mutants` hunts for all of them."""

import pytest

from tests.simulation.bugs.changing import applied
from tests.simulation.bugs.hunting import BUGS, hunt
from tests.simulation.running import Plan, Stage, run

pytestmark = pytest.mark.either_database

SOON = {
    "key_per_attempt": "3",
    "history_after_commit": "16",
    "lease_requeues": "8",
    "nobody_is_asked": "11",
    "payload_not_compared": "4",
    "error_is_refusal": "8",
    "absence_once": "12",
    "one_is_enough": "19",
}


@pytest.mark.parametrize("name", SOON)
def test_a_bug_is_found(here: Stage, name: str) -> None:
    found = hunt(here, BUGS[name], most=60).found
    assert found is not None, "within sixty seeds"
    assert found.violation is not None
    assert found.violation.name.split()[0] == SOON[name]
    assert run(here, found.plan).violation is None, "and without the bug the same seed is sound"


def test_every_bug_still_fits_the_code(here: Stage) -> None:
    """Enough of them, and none that changes nothing because the line is another by now."""
    assert len(BUGS) >= 20
    for bug in BUGS.values():
        with applied(bug):
            pass


def test_a_broken_run_replays_exactly(here: Stage) -> None:
    with applied(BUGS["lease_requeues"]):
        found = hunt(here, BUGS["absence_once"], most=1).found or run(here, Plan(1))
        assert run(here, found.plan).digest == run(here, found.plan).digest
