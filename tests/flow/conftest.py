import pytest

from actions import times
from tests.flow.world import Clock, World, make_world
from tests.sandbox.sandbox_client import Sandbox

SECRET = "sk_test_never_to_be_stored"


@pytest.fixture
def world(sandbox: Sandbox, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("LANDED_TEST_SECRET", SECRET)
    clock = Clock(times.now)
    monkeypatch.setattr(times, "now", clock)
    return make_world(sandbox, clock)
