import time
from collections.abc import Iterator

import pytest

from tests.simulation.running import Plan, Stage, run, stage

pytestmark = pytest.mark.either_database


@pytest.fixture
def here(transactional_db: None) -> Iterator[Stage]:
    with stage() as found:
        yield found


def test_one_seed_is_one_run(here: Stage) -> None:
    t = time.process_time()
    for seed in range(60):
        a = run(here, Plan(seed))
        if a.violation: print(seed, str(a.violation)[:300])
    print("cpu per seed", (time.process_time() - t) / 60)
    assert run(here, Plan(3)).digest == run(here, Plan(3)).digest
