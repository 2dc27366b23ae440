import pytest

from actions import times
from tests.flow.world import Clock, World, make_world
from tests.sandbox.sandbox_client import Sandbox


@pytest.fixture
def world(sandbox: Sandbox, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> World:
    """The main path against the sandbox, whose books are looked through every minute."""
    monkeypatch.setenv("LANDED_TEST_SECRET", "sk_test_never_to_be_stored")
    clock = Clock(times.now)
    monkeypatch.setattr(times, "now", clock)
    found = make_world(sandbox, clock)
    found.downstream.look_back_s = 60
    found.downstream.save()
    return found
