"""The whole way: a real payments service signs, a real web server verifies."""

import time
from collections.abc import Callable, Iterator

import pytest

from actions import history
from actions.models import Intent
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Check, Delivery
from tests.flow.world import World
from tests.hooks.hooking import OLD_SECRET, SECRET


def within(seconds: float, holds: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < until, list(Delivery.objects.values_list("topic", "outcome"))
        time.sleep(0.05)


@pytest.fixture
def address(world: World, live: str) -> Iterator[str]:
    found = f"{live}/api/v1/webhooks/{world.downstream.name}"
    world.sandbox.configure(webhook_url=found, webhook_secret=SECRET)
    yield found
    # What it would still deliver is no other test's business.
    world.sandbox.call("POST", "/_control/reset")


def lost(world: World, subject: str) -> Intent:
    world.sandbox.order_fault(subject, "lose_response")
    intent = world.propose(subject)
    world.send()
    return world.read(intent)


def test_a_lost_answer_is_settled_by_the_webhook_where_nobody_can_look(world: World, address: str) -> None:
    world.downstream.look_up, world.downstream.absence_conclusive = "none", False
    world.downstream.save()
    world.kind.refresh_from_db()
    intent = lost(world, "order-e1")
    within(8, lambda: world.read(intent).status == Status.CONFIRMED)
    check = Check.objects.get(intent=intent)
    assert check.by.startswith("webhook:")
    assert history.faults(world.read(intent)) == []
    assert world.posts(intent) == 1


def test_a_lost_answer_is_looked_up_as_soon_as_the_webhook_comes(world: World, address: str) -> None:
    world.kind.check_schedule = [3_600]
    world.kind.save()
    intent = lost(world, "order-e2")
    within(8, lambda: Delivery.objects.filter(tries__gte=1).exists())
    world.later(6)  # when it came while the attempt was open, it is asked again

    def confirmed() -> bool:
        world.sweep()
        checks.run(budget_s=5)
        return world.read(intent).status == Status.CONFIRMED

    within(8, confirmed)
    found = world.read(intent)
    assert (found.settled_by, world.posts(intent)) == ("ledger", 1)
    assert history.faults(found) == []


def test_a_sender_with_another_secret_is_not_heard_until_it_is_named(
    world: World, address: str, caplog: pytest.LogCaptureFixture
) -> None:
    world.sandbox.configure(webhook_secret=OLD_SECRET)
    intent = lost(world, "order-e3")
    within(8, lambda: "is not verified" in caplog.text)
    assert not Delivery.objects.exists()
    world.downstream.webhook_old_secret_env = "LANDED_TEST_WEBHOOKS_OLD"
    world.downstream.save()
    within(8, Delivery.objects.exists)  # the sandbox delivers again
    assert Delivery.objects.get().about_data["keys"] == [intent.idempotency_key]
