from collections.abc import Iterator

import pytest

from tests.simulation.running import Stage, stage


@pytest.fixture
def here(transactional_db: None) -> Iterator[Stage]:
    """A database in memory beside the test's own, which stays empty."""
    with stage() as found:
        yield found
