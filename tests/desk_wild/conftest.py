import pytest

from actions import times
from tests.flow.world import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The database's time as the product reads it, to be moved."""
    found = Clock(times.now)
    monkeypatch.setattr(times, "now", found)
    return found
