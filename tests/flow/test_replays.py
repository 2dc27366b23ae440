"""The same key again, by machine: only inside its window, only where the kind asks, and never as proof of more than
its own attempt."""

import time
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.db import transaction

from actions import dispatch, times, transport
from actions.models import Attempt, Downstream, Intent, Kind
from actions.statuses import Status
from reconciliation.models import ReasonCode, Review
from reconciliation.reviews import opening
from tests.connectors.replies import reply
from tests.flow.conftest import SECRET
from tests.flow.test_sending import in_threads
from tests.flow.world import Clock, World, make_world
from tests.sandbox.sandbox_client import Sandbox


@pytest.fixture
def world(sandbox: Sandbox, transactional_db: None, monkeypatch: pytest.MonkeyPatch) -> World:
    """A kind that replays, at a downstream that nobody can look into."""
    monkeypatch.setenv("LANDED_TEST_SECRET", SECRET)
    clock = Clock(times.now)
    monkeypatch.setattr(times, "now", clock)
    found = make_world(sandbox, clock, replay="in_window", replay_schedule=[5, 15])
    Downstream.objects.update(look_up="none", dedupe_window_s=86_400)
    return found


def lost(world: World, subject: str, *faults: str) -> Intent:
    """An intent whose first sending was booked and never answered; `faults` befall the next ones."""
    for fault in ("lose_response", *faults):
        world.sandbox.order_fault(subject, fault)
    intent = world.propose(subject)
    world.send()
    return world.read(intent)


def ask_somebody(intent: Intent) -> None:
    with transaction.atomic():
        opening.open_for_outcome(intent, ReasonCode.REQUESTED, now=intent.updated_at)


def steps(intent: Intent) -> list[tuple[str, str]]:
    return list(intent.transitions.values_list("to_status", "reason"))


def open_reasons(intent: Intent) -> list[str]:
    found = Review.objects.filter(intent=intent, closed_at__isnull=True).first()
    return [] if found is None else list(found.reasons.values_list("code", flat=True))


def test_a_lost_answer_is_had_by_sending_the_same_key_again(world: World) -> None:
    intent = lost(world, "order-1")
    assert intent.status == Status.UNKNOWN
    assert open_reasons(intent) == [], "nobody is asked while a machine can find out"
    assert world.send() == 0, "not before its time"
    world.later(5)
    assert world.send() == 1
    found = world.read(intent)
    assert (found.status, found.settled_by, found.guard_key) == ("confirmed", "answer", None)
    assert [kind for kind, _ in steps(intent)] == ["recorded", "submitted", "unknown", "submitted", "confirmed"]
    assert steps(intent)[3][1] == "replayed"
    seen = world.sandbox.requests("order-1")
    assert [one["idempotency_key"] for one in seen] == [intent.idempotency_key] * 2
    assert len(world.booked(intent)) == 1


def test_what_may_not_be_sent_any_more_by_then_is_asked_of_a_person_at_once(world: World) -> None:
    Kind.objects.update(send_before_s=4)
    intent = lost(world, "order-11")
    assert (intent.status, intent.next_attempt_at) == (Status.UNKNOWN, None)
    assert open_reasons(intent) == ["still_unknown"]
    world.later(6)
    assert world.send() == 0


def test_once_it_may_not_be_sent_any_more_a_person_is_asked_at_the_next_sweep(world: World) -> None:
    """No worker was there in time."""
    Kind.objects.update(send_before_s=60)
    intent = lost(world, "order-12")
    assert open_reasons(intent) == []
    world.later(61)
    assert world.send() == 0
    world.sweep()
    assert (world.read(intent).next_attempt_at, open_reasons(intent)) == (None, ["still_unknown"])


def test_a_replay_that_is_refused_leaves_it_unknown_and_after_two_a_person_is_asked(world: World) -> None:
    """The secret was rotated: the first one was booked, the others get a 401, which speaks for themselves alone."""
    intent = lost(world, "order-2", "reject_401", "reject_401")
    for expected in ([], [ReasonCode.STILL_UNKNOWN]):
        world.later(20)
        assert world.send() == 1
        found = world.read(intent)
        assert (found.status, found.status_reason) == ("unknown", "earlier_attempt_open")
        assert open_reasons(intent) == expected
    world.later(500)
    assert world.send() == 0
    assert [attempt.result for attempt in found.attempts.all()] == ["no_answer", "refused", "refused"]


def test_a_replay_that_can_not_be_sent_leaves_it_unknown(world: World) -> None:
    intent = lost(world, "order-3")
    Downstream.objects.update(base_url="http://no-such-host.invalid")
    world.later(5)
    assert world.send() == 1
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "earlier_attempt_open")
    assert found.first_maybe_sent_at == intent.first_maybe_sent_at, "its window still counts from the first"
    assert found.attempts.get(number=2).result == "not_sent"


@pytest.mark.parametrize(("age_s", "sent"), [(86_400 - 60, 1), (86_400 - 1, 0), (90_000, 0)])
def test_a_key_is_sent_again_only_inside_its_window(world: World, age_s: int, sent: int) -> None:
    """23 h 59 min: yes. A second before its end the request would arrive after it; at 25 h it is new to them."""
    Kind.objects.update(send_before_s=None)
    intent = lost(world, "order-4")
    world.later(age_s)
    assert world.send() == sent
    assert world.posts(intent) == 1 + sent
    if not sent:
        world.sweep()
        assert world.read(intent).next_attempt_at is None
        assert open_reasons(intent) == [ReasonCode.STILL_UNKNOWN]


def test_the_first_byte_of_a_replay_leaves_inside_the_window_or_not_at_all(world: World) -> None:
    """Claimed in time, and then the process stood still."""
    Kind.objects.update(send_before_s=None)
    intent = lost(world, "order-5")
    assert intent.first_maybe_sent_at is not None
    last = intent.first_maybe_sent_at.timestamp() + 86_400 - world.downstream.deadline_ms / 1000
    world.later(last - 0.3 - world.clock().timestamp())
    (claimed,) = dispatch.claim(slots=5)
    time.sleep(0.4)
    dispatch.save(claimed, dispatch.send(claimed))
    assert world.posts(intent) == 1
    assert world.read(intent).attempts.get(number=2).reason == "too_late"


def test_nothing_at_all_leaves_after_send_before(world: World) -> None:
    intent = world.propose("order-6", send_before=world.clock() + timedelta(seconds=0.4))
    (claimed,) = dispatch.claim(slots=5)
    time.sleep(0.5)
    dispatch.save(claimed, dispatch.send(claimed))
    assert world.posts(intent) == 0
    found = world.read(intent)
    assert found.attempts.get().reason == "too_late"
    world.sweep()
    assert (world.read(intent).status, world.read(intent).status_reason) == ("cancelled", "expired")


@pytest.mark.parametrize(
    "change",
    [
        lambda intent: Downstream.objects.update(dedupes=False, dedupe_window_s=None),
        lambda intent: Downstream.objects.update(dedupe_window_s=3),
        lambda intent: Downstream.objects.update(paused=True),
        lambda intent: Kind.objects.update(paused=True),
        lambda intent: Intent.objects.update(send_before=intent.created_at),
        ask_somebody,
    ],
    ids=["no longer dedupes", "shorter window", "downstream paused", "kind paused", "send_before", "a person has it"],
)
def test_no_key_is_sent_again_where_something_speaks_against_it(
    world: World, change: Callable[[Intent], object]
) -> None:
    intent = lost(world, "order-7")
    change(intent)
    world.later(60)
    assert world.send() == 0
    assert world.posts(intent) == 1
    world.later(1_000)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    assert open_reasons(intent), "it ends with a person, not in silence"


def test_kinds_that_do_not_ask_for_it_are_never_replayed(world: World) -> None:
    Kind.objects.update(replay="never")
    intent = lost(world, "order-8")
    assert intent.next_attempt_at is None
    assert open_reasons(intent) == [ReasonCode.STILL_UNKNOWN]


def test_after_the_last_replay_without_an_answer_a_person_is_asked(world: World) -> None:
    intent = lost(world, "order-9", "error_500_not_booked", "error_500_not_booked")
    for wait, asked in ((5, []), (15, [ReasonCode.STILL_UNKNOWN])):
        world.later(wait)
        assert world.send() == 1
        assert open_reasons(intent) == asked
    assert world.posts(intent) == 3


def test_a_stored_error_proves_nothing_and_after_two_a_person_is_asked_although_there_is_a_book(world: World) -> None:
    Downstream.objects.update(look_up="both")
    intent = lost(world, "order-10")
    for asked in ([], [ReasonCode.STILL_UNKNOWN]):
        world.later(20)
        (claimed,) = dispatch.claim(slots=5)
        dispatch.save(claimed, reply(500, b"{}", idempotent_replayed="true"))
        assert (world.read(intent).status, world.read(intent).status_reason) == ("unknown", "replayed_error")
        assert open_reasons(intent) == asked
    world.later(600)
    assert dispatch.claim(slots=5) == []


def test_a_key_that_the_downstream_knows_with_another_body_is_a_case_at_once(world: World) -> None:
    Downstream.objects.update(look_up="both")
    intent = lost(world, "order-11")
    world.later(5)
    (claimed,) = dispatch.claim(slots=5)
    dispatch.save(claimed, reply(422, b'{"error": {"code": "key_reused"}}'))
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "key_used_otherwise")
    assert open_reasons(intent) == [ReasonCode.STILL_UNKNOWN]
    assert found.next_attempt_at is None


def test_the_book_shows_it_first_and_nothing_is_sent_again(world: World) -> None:
    Downstream.objects.update(look_up="both")
    intent = lost(world, "order-12")
    world.check(intent)
    world.later(60)
    assert world.send() == 0
    assert (world.read(intent).status, world.posts(intent)) == (Status.CONFIRMED, 1)


def test_what_the_book_shows_as_pending_is_not_sent_again(world: World) -> None:
    Downstream.objects.update(look_up="both")
    intent = world.propose("order-13")
    (claimed,) = dispatch.claim(slots=5)
    dispatch.save(claimed, reply(500, b""))
    row = {"order": "order-13", "amount_minor": 5_000, "currency": "EUR", "type": "refund", "status": "pending"}
    world.sandbox.call("POST", "/_control/entries", row | {"idempotency_key": intent.idempotency_key})
    assert world.read(intent).next_attempt_at is not None
    assert world.check(intent).verdict == "pending"
    assert world.read(intent).next_attempt_at is None


def test_many_workers_at_once_send_a_key_again_once(world: World) -> None:
    intents = [lost(world, f"order-{n}") for n in range(20, 26)]
    world.later(5)
    in_threads(4, lambda: dispatch.run(budget_s=5, slots=3))
    assert [world.posts(intent) for intent in intents] == [2] * 6
    assert {world.read(intent).status for intent in intents} == {Status.CONFIRMED}


def test_a_worker_that_dies_in_the_first_sending_or_the_replay_leaves_the_next_one_to_the_clock(world: World) -> None:
    intent = world.propose("order-30")
    for number in (1, 2, 3):
        (claimed,) = dispatch.claim(slots=5)
        transport.send(claimed.call, claimed.limits)  # and the process is gone
        world.later(10)
        world.sweep()
        found = world.read(intent)
        assert (found.status, found.status_reason) == ("unknown", "lease_over")
        assert (found.next_attempt_at is None) is (number == 3), "two replays are all that the kind asks for"
        world.later(20)
    assert open_reasons(intent) == [ReasonCode.STILL_UNKNOWN]
    assert (world.posts(intent), len(world.booked(intent))) == (3, 1)


def test_the_late_answer_of_the_first_attempt_does_not_overtake_the_replay(world: World) -> None:
    intent = world.propose("order-31")
    (first,) = dispatch.claim(slots=5)
    world.later(10)
    world.sweep()
    world.later(5)
    (second,) = dispatch.claim(slots=5)
    dispatch.save(first, reply(401, b""))
    assert world.read(intent).status == Status.SUBMITTED, "an old fence moves nothing"
    dispatch.save(second, dispatch.send(second))
    assert (world.read(intent).status, len(world.booked(intent))) == (Status.CONFIRMED, 1)
    assert Attempt.objects.get(intent=intent, number=1).late_result == "refused"


def test_a_late_refusal_of_the_first_and_a_refused_replay_together_are_a_refusal(world: World) -> None:
    intent = world.propose("order-32")
    (first,) = dispatch.claim(slots=5)
    world.later(10)
    world.sweep()
    world.later(5)
    (second,) = dispatch.claim(slots=5)
    dispatch.save(first, reply(401, b""))
    dispatch.save(second, reply(401, b""))
    assert world.read(intent).status == Status.FAILED, "every attempt is proven refused"
