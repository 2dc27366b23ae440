"""Real processes that stand still or die in the middle, and many intents on few places."""

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from subprocess import Popen
from typing import Any

import psutil
import pytest

from actions import dispatch, history, times
from actions.errors import MayHaveHappened
from actions.models import Attempt, Downstream, Intent
from config.children import wait_until
from reconciliation.models import Verdict
from tests.flow.conftest import SECRET
from tests.flow.world import World

Run = Callable[..., "Popen[bytes]"]


@pytest.fixture
def run(database_url: str, spawn: Run, tmp_path: Path) -> Run:
    def start(*arguments: str) -> "Popen[bytes]":
        return spawn(
            [sys.executable, "-m", "tests.cases.processes", *arguments],
            env={
                "DATABASE_URL": database_url,
                "DJANGO_SETTINGS_MODULE": "config.settings",
                "LANDED_TEST_SECRET": SECRET,
            },
            log=tmp_path / "log",
        )

    return start


def test_a_worker_that_stood_still_between_claim_and_sending_past_its_lease_sends_nothing(
    world: World, run: Run
) -> None:
    Downstream.objects.update(deadline_ms=700, lease_margin_ms=500)
    intent = world.propose("order-1")
    worker = run("stopped_worker")
    seen = psutil.Process(worker.pid)
    assert wait_until(lambda: seen.status() == psutil.STATUS_STOPPED, within_s=20)
    assert (world.read(intent).status, world.posts(intent)) == ("submitted", 0)
    lease_until = intent.attempts.get().lease_until
    time.sleep(max(0.0, (lease_until - times.now()).total_seconds()) + 0.05)
    world.sweep()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "lease_over")
    seen.resume()
    assert worker.wait(20) == 0
    assert world.posts(intent) == 0, "the lease was over: not one byte"
    found, attempt = world.read(intent), intent.attempts.get()
    assert (attempt.closed_by, attempt.late_result, attempt.late_reason) == ("clock", "not_sent", "too_late")
    assert (found.status, found.first_maybe_sent_at) == ("recorded", None), "its own word, and proven"
    Downstream.objects.update(deadline_ms=2_000, lease_margin_ms=2_000)
    world.later(5)
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("confirmed", 1)
    assert history.faults(world.read(intent)) == []


def test_a_caller_that_was_killed_after_sending_leaves_it_unknown_and_nobody_sends_it_again(
    world: World, run: Run
) -> None:
    caller = run("dying_caller", world.kind.name, "order-1", "run-1/step-2", world.sandbox.url)
    assert caller.wait(20) == -9
    intent = Intent.objects.get()
    assert (intent.status, world.posts(intent)) == ("submitted", 1)
    world.later(60)
    world.sweep()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "lease_over")
    with pytest.raises(MayHaveHappened) as told:
        world.propose("order-1", executor="caller", request_key="run-1/step-2")
    assert told.value.details["intent"].pk == intent.pk
    assert world.check(intent).verdict == Verdict.MATCH
    assert world.read(intent).status == "confirmed"


def test_fifty_due_intents_on_ten_places_are_sent_inside_their_leases(world: World) -> None:
    """The downstream is slow: whoever claimed more than it can send would let leases run while intents queue."""
    Downstream.objects.update(deadline_ms=30_000, lease_margin_ms=2_000, max_concurrency=50)
    world.sandbox.configure(latency_ms=60)
    for number in range(50):
        world.propose(f"order-{number}")
    assert dispatch.run(budget_s=30, slots=10) == 50
    attempts = list(Attempt.objects.select_related("intent"))
    assert {attempt.intent.status for attempt in attempts} == {"confirmed"}
    assert len(attempts) == 50, "none was too late and tried again"
    posts: list[dict[str, Any]] = world.sandbox.call("GET", "/_control/requests").json["data"]
    arrived = {post["order"]: datetime.fromtimestamp(post["at"], UTC) for post in posts}
    assert len(posts) == len(arrived) == 50
    for attempt in attempts:
        others = [one for one in attempts if one.closed_at and one.claimed_at <= attempt.claimed_at < one.closed_at]
        assert len(others) <= 10, "never more claimed than there are places"
        assert arrived[attempt.intent.subject] < attempt.lease_until
