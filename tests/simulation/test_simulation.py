"""Some hundred seeds (`LANDED_SEEDS`). One that breaks an invariant is printed as the shortest run that does.

`make simulate SEEDS=100000` runs more; `python -m tests.simulation --only SEED` shows one.
"""

import os

import pytest

from tests.simulation.running import Plan, Stage, run, shrink

pytestmark = pytest.mark.either_database

SEEDS, TOGETHER = int(os.environ.get("LANDED_SEEDS", "250")), 25


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_whatever_happens_every_invariant_holds(here: Stage, first: int) -> None:
    for seed in range(first, first + TOGETHER):
        ran = run(here, Plan(seed))
        if ran.violation is not None:
            shortest = shrink(here, ran)
            pytest.fail(f"seed {seed}: {ran.violation}\n" + "\n".join(shortest.trace), pytrace=False)


def test_a_seed_replays_exactly(here: Stage) -> None:
    first, others = run(here, Plan(7)), [run(here, Plan(seed)) for seed in (8, 9)]
    again = run(here, Plan(7))
    assert (again.digest, again.trace) == (first.digest, first.trace)
    assert len({first.digest, *(one.digest for one in others)}) == 3
    assert len(first.trace) > 20, "something happened"
