"""Sending under bad luck: two workers, rollbacks, time-outs, a process that stands still, Redis that goes away."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction
from rq.timeouts import JobTimeoutException

from actions import dispatch, jobs, saving, services, transport
from actions.models import Attempt, Downstream, Intent
from actions.statuses import Status
from reconciliation.models import Verdict
from tests.flow.world import World


def in_threads(number: int, act: Callable[[], object]) -> None:
    """Runs `act` in so many threads at once, each with its own database connection; re-raises what fails."""
    problems: list[BaseException] = []
    start = threading.Barrier(number)

    def run() -> None:
        try:
            start.wait()
            act()
        except BaseException as problem:
            problems.append(problem)
        finally:
            connection.close()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems, problems


def test_four_workers_at_once_send_each_intent_once(world: World) -> None:
    # With the usual margin a busy machine is too late for some of them, and then rightly sends nothing.
    Downstream.objects.update(deadline_ms=20_000, connect_timeout_ms=10_000, lease_margin_ms=20_000)
    intents = [world.propose(f"order-{n}") for n in range(12)]
    in_threads(4, lambda: dispatch.run(budget_s=30, slots=3))
    assert [world.posts(intent) for intent in intents] == [1] * 12
    assert set(Intent.objects.values_list("status", flat=True)) == {"confirmed"}
    assert Attempt.objects.count() == 12


def test_a_rolled_back_proposal_is_never_sent_and_a_job_that_looks_early_finds_nothing(world: World) -> None:
    looked = []

    class Abort(Exception):
        pass

    def look_from_elsewhere() -> None:
        looked.append(Intent.objects.count() if connection.vendor == "postgresql" else 0)
        connection.close()

    with pytest.raises(Abort), transaction.atomic():
        world.propose("order-20")
        other = threading.Thread(target=look_from_elsewhere)
        other.start()
        other.join()
        raise Abort
    assert looked == [0]
    assert world.send() == 0
    assert Intent.objects.count() == 0
    assert world.sandbox.requests("order-20") == []


def test_two_refunds_of_18_on_two_parts_of_one_order_are_two_effects(world: World) -> None:
    one, two = world.propose("O-7/1", "18.00"), world.propose("O-7/2", "18.00")
    world.send()
    assert one.idempotency_key != two.idempotency_key
    assert [e["amount_minor"] for i in (one, two) for e in world.booked(i)] == [1800, 1800]


def test_500_yen_go_out_as_500(world: World) -> None:
    intent = world.propose("order-21", "500", "JPY")
    assert intent.status == Status.HELD, "a currency without limits is held"
    world.kind.limits = {**world.kind.limits, "JPY": {}}
    world.kind.save()
    intent = world.propose("order-22", "500", "JPY")
    world.send()
    assert [e["amount_minor"] for e in world.booked(intent)] == [500]


def test_a_504_after_the_booking_is_unknown_and_later_confirmed_with_the_downstreams_id(world: World) -> None:
    world.sandbox.order_fault("order-23", "error_504_booked")
    intent = world.propose("order-23")
    world.send()
    assert world.read(intent).status == Status.UNKNOWN
    world.check(intent)
    assert world.read(intent).external_id == world.booked(intent)[0]["id"]


def test_a_host_that_does_not_resolve_is_never_unknown(world: World) -> None:
    Downstream.objects.update(base_url="http://payments.invalid")
    intent = world.propose("order-24")
    world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("recorded", "not_sent")
    assert found.attempts.get().reason in ("dns", "dns_timeout")


def test_not_sent_retries_are_used_up_and_it_says_that_nothing_left(world: World) -> None:
    Downstream.objects.update(base_url="http://127.0.0.1:1")
    world.kind.not_sent_retries = 1
    world.kind.save()
    intent = world.propose("order-25")
    world.send()
    assert world.read(intent).status == Status.RECORDED
    world.later(60)
    world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason, found.settled_by) == ("failed", "not_sent_given_up", "nothing_sent")
    assert found.first_maybe_sent_at is None


def test_what_our_own_validation_refuses_was_never_sent(world: World) -> None:
    Downstream.objects.update(config={**world.downstream.config, "send": {"method": "POST"}})
    intent = world.propose("order-26")
    world.send()
    found = world.read(intent)
    assert found.status in (Status.FAILED, Status.RECORDED)
    assert found.attempts.count() == 0
    assert world.posts(intent) == 0


def test_a_missing_secret_sends_nothing_and_loses_nothing(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = world.propose("order-27")
    monkeypatch.delenv("LANDED_TEST_SECRET")
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("recorded", 0)
    monkeypatch.setenv("LANDED_TEST_SECRET", "back")
    world.later(60)
    world.send()
    assert world.read(intent).status == Status.CONFIRMED


def test_the_secret_is_in_no_evidence(world: World) -> None:
    intent = world.propose("order-28")
    world.send()
    texts = list(intent.evidence.values_list("text", flat=True))
    assert len(texts) == 2
    assert not any("never_to_be_stored" in text for text in texts)


def test_a_jobs_time_out_in_the_middle_of_a_call_leaves_it_to_the_lease(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sandbox.order_fault("order-29", "silent")
    intent = world.propose("order-29")

    def time_out(*_: Any, **__: Any) -> Any:
        raise JobTimeoutException("180 s")

    monkeypatch.setattr("actions.loop.wait", time_out)
    with pytest.raises(JobTimeoutException):
        world.send()
    assert world.read(intent).status == Status.SUBMITTED
    time.sleep(0.3)
    world.later(10)
    world.sweep()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "lease_over")
    assert world.check(intent).verdict == Verdict.MATCH
    assert world.read(intent).status == Status.CONFIRMED


def test_a_worker_that_stood_still_past_its_send_by_sends_nothing(world: World) -> None:
    intent = world.propose("order-30")
    (claimed,) = dispatch.claim(slots=1)
    assert claimed.limits.send_by is not None
    late = transport.Limits(connect_timeout_s=1, deadline_s=1, send_by=transport.boot_clock() - 0.01, reuse=False)
    reply = transport.send(claimed.call, late)
    assert (reply.maybe_sent, world.posts(intent)) == (False, 0)
    dispatch.save(claimed, reply)
    assert world.read(intent).status == Status.RECORDED


def test_an_answer_that_comes_after_the_clock_still_settles(world: World) -> None:
    intent = world.propose("order-31")
    (claimed,) = dispatch.claim(slots=1)
    reply = dispatch.send(claimed)
    world.later(60)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    dispatch.save(claimed, reply)
    found = world.read(intent)
    assert (found.status, found.settled_by) == ("confirmed", "answer")
    attempt = found.attempts.get()
    assert (attempt.closed_by, attempt.result, attempt.late_result) == ("clock", "no_answer", "confirmed")
    dispatch.save(claimed, reply)
    assert found.transitions.count() == 4, "the same answer twice is one answer"


def test_a_save_that_fails_is_tried_again_and_the_sending_is_not(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    real, failures = dispatch.save, [1, 1]

    def save(claimed: dispatch.Claimed, reply: transport.Reply) -> Intent:
        if failures:
            failures.pop()
            raise OperationalError("the database is away")
        return real(claimed, reply)

    monkeypatch.setattr(saving, "save", save)
    intent = world.propose("order-32")
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("confirmed", 1)


def test_never_more_under_way_than_the_downstream_takes(world: World) -> None:
    Downstream.objects.update(max_concurrency=2)
    for n in range(5):
        world.propose(f"order-4{n}")
    assert len(dispatch.claim(slots=10)) == 2
    assert dispatch.claim(slots=10) == []


def test_nothing_is_sent_after_send_before_and_it_says_so(world: World) -> None:
    intent = world.propose("order-33")
    world.later(86_401)
    assert world.send() == 0
    world.sweep()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("cancelled", "expired")
    assert world.posts(intent) == 0


def test_a_paused_downstream_sends_nothing(world: World) -> None:
    Downstream.objects.update(paused=True)
    intent = world.propose("order-34")
    assert world.send() == 0
    Downstream.objects.update(paused=False)
    world.send()
    assert world.posts(intent) == 1


def test_ringing_without_redis_fails_nobody(world: World, settings: Any) -> None:
    from redis.exceptions import ConnectionError as Away

    def no_redis(_: str) -> Any:
        raise Away("refused")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("django_rq.get_queue", no_redis)
        intent = world.propose("order-35")
        assert jobs.ring(jobs.SEND) is False
    assert world.read(intent).status == Status.RECORDED


def test_after_a_ring_that_failed_nobody_waits_for_redis_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    from redis.exceptions import TimeoutError as Frozen

    tried: list[str] = []

    def frozen(queue: str) -> Any:
        tried.append(queue)
        raise Frozen("no answer")

    now = [100.0]
    monkeypatch.setattr("actions.jobs.time.monotonic", lambda: now[0])
    with monkeypatch.context() as patch:
        patch.setattr("django_rq.get_queue", frozen)
        assert [jobs.ring(jobs.SEND) for _ in range(5)] == [False] * 5
        assert len(tried) == 1
        now[0] += 2.1
        assert jobs.ring(jobs.SEND) is False
        assert len(tried) == 2
    now[0] += 2.1
    assert jobs.ring(jobs.SEND) is True


def test_a_ring_that_arrives_eleven_times_sends_once(world: World) -> None:
    intent = world.propose("order-36")
    in_threads(11, lambda: jobs.send_due(budget_s=5))
    assert world.posts(intent) == 1


def test_two_sweeps_at_once_equal_one(world: World) -> None:
    intent = world.propose("order-37")
    dispatch.claim(slots=1)
    world.later(60)
    in_threads(4, world.sweep)
    found = world.read(intent)
    assert (found.status, found.transitions.filter(to_status="unknown").count()) == ("unknown", 1)


def test_cancel_is_too_late_once_it_may_have_been_sent(world: World) -> None:
    from actions.errors import TooLate

    intent = world.propose("order-38")
    dispatch.claim(slots=1)
    with pytest.raises(TooLate):
        services.cancel(intent.pk)
    other = world.propose("order-39")
    assert services.cancel(other.pk).status == Status.CANCELLED
    assert services.cancel(other.pk).status == Status.CANCELLED, "asked again, it answers the same"
