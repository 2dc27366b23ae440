"""A thousand seeds (`LANDED_SEEDS`). One that breaks an invariant is printed as the shortest run that does.

`make simulate SEEDS=100000` runs more; `python -m tests.simulation --only SEED` shows one.
"""

import asyncio
import os

import pytest

from tests.simulation.running import Plan, Stage, run, shrink, stage

pytestmark = pytest.mark.either_database

SEEDS, TOGETHER = int(os.environ.get("LANDED_SEEDS", "1000")), 25
_HAPPENS = ("first byte", "CRASHES", "is stopped", "at last", "quiet-check", " decides ", "webhook")


@pytest.mark.parametrize("first", range(0, SEEDS, TOGETHER))
def test_whatever_happens_every_invariant_holds(here: Stage, first: int) -> None:
    told = []
    for seed in range(first, first + TOGETHER):
        ran = run(here, Plan(seed))
        if ran.violation is not None:
            shortest = shrink(here, ran)
            pytest.fail(f"seed {seed}: {ran.violation}\n" + "\n".join(shortest.trace), pytrace=False)
        told += ran.trace
    # Where nothing happens, nothing breaks.
    assert [word for word in _HAPPENS if word not in "\n".join(told)] == []


def test_a_seed_replays_exactly(here: Stage) -> None:
    first, others = run(here, Plan(7)), [run(here, Plan(seed)) for seed in (8, 9)]
    again = run(here, Plan(7))
    assert (again.digest, again.trace) == (first.digest, first.trace)
    assert len({first.digest, *(one.digest for one in others)}) == 3
    assert len(first.trace) > 20, "something happened"


def test_an_event_loop_in_this_thread_changes_nothing(
    transactional_db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As after any test that opened a browser: then Django keeps connections in the context, one per greenlet."""
    with stage() as here:
        alone = run(here, Plan(7))
    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
    loop = asyncio.new_event_loop()
    # Maybe there is one: a test before this one did open a browser.
    before = asyncio._get_running_loop()
    asyncio._set_running_loop(loop)
    try:
        with stage() as there:
            assert run(there, Plan(7)).digest == alone.digest
    finally:
        asyncio._set_running_loop(before)
        loop.close()
