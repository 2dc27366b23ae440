import pytest

from actions import times
from tests.flow.world import Clock, World, make_world
from tests.hooks.hooking import OLD_SECRET, SECRET, Hooks, make_hooks
from tests.sandbox.sandbox_client import Sandbox


@pytest.fixture(autouse=True)
def _secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LANDED_TEST_WEBHOOKS", SECRET)
    monkeypatch.setenv("LANDED_TEST_WEBHOOKS_OLD", OLD_SECRET)
    monkeypatch.setenv("LANDED_TEST_SECRET", "sk_test_never_to_be_stored")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock(times.now)
    monkeypatch.setattr(times, "now", found)
    return found


@pytest.fixture
def hooks(db: None, clock: Clock) -> Hooks:
    """A downstream whose webhooks are the only thing that it says."""
    return make_hooks(clock, look_up="none", absence_conclusive=False)


@pytest.fixture
def watched(db: None, clock: Clock) -> Hooks:
    """A downstream that can be looked into as well."""
    return make_hooks(clock, look_up="both")


@pytest.fixture
def world(sandbox: Sandbox, transactional_db: None, clock: Clock) -> World:
    """A sandbox that can be looked into and sends webhooks."""
    found = make_world(sandbox, clock)
    found.downstream.webhook_secret_env = "LANDED_TEST_WEBHOOKS"
    found.downstream.save()
    return found
