"""Times that run out: nothing is sent after `send_before`, whoever would send it, and what is overdue says so."""

import time
from datetime import timedelta
from typing import Any

import pytest

from actions import callers, dispatch, history, times, transport
from actions import services as actions
from actions.errors import MayHaveHappened, PastSendBefore
from actions.models import Downstream, Intent, Kind
from actions.statuses import Status
from reconciliation.models import Choice, DecisionReason
from tests.api.calling import make_caller, problem, report
from tests.factories import make_person
from tests.flow.test_deciding import decide
from tests.flow.world import World

DAY_S = 86_400


def change(world: World, **columns: Any) -> None:
    Kind.objects.update(**columns)
    world.kind.refresh_from_db()


def expired(world: World, intent: Intent) -> bool:
    """Whether it ended because its time was over, unsent, and its subject is free."""
    found = world.read(intent)
    assert history.faults(found) == []
    assert world.posts(intent) == 0
    ended = (found.status, found.status_reason, found.settled_by, found.guard_key)
    return ended == ("cancelled", "expired", "nothing_sent", None)


@pytest.mark.parametrize("clock_went_on", [True, False])
def test_of_what_waited_two_days_in_a_paused_kind_only_what_has_time_left_is_sent(
    world: World, clock_went_on: bool
) -> None:
    """Also where nothing ran in those two days, and the worker comes before the clock."""
    change(world, send_before_s=3 * DAY_S)
    patient = world.propose("order-1")
    change(world, send_before_s=DAY_S)
    overdue = [world.propose("order-2"), world.propose("order-3")]
    change(world, paused=True)
    for _ in range(2):
        world.later(DAY_S)
        assert world.send() == 0
        if clock_went_on:
            world.sweep()
    change(world, paused=False)
    world.send()
    world.sweep()
    world.send()
    assert (world.read(patient).status, world.posts(patient)) == ("confirmed", 1)
    assert all(expired(world, intent) for intent in overdue)
    again = world.propose("order-2")
    world.send()
    assert (world.read(again).status, world.posts(again)) == ("confirmed", 1), "its subject is free"


@pytest.mark.parametrize("replay", [False, True], ids=["first sending", "replay"])
def test_claimed_just_in_time_not_one_byte_leaves_after_send_before(world: World, replay: bool) -> None:
    change(world, replay="in_window", replay_schedule=[1])
    world.sandbox.order_fault("order-1", "error_500_not_booked", times=2)
    Downstream.objects.update(lease_margin_ms=5_000)
    until = times.now() + timedelta(seconds=1)
    intent = world.propose("order-1", send_before=until)
    if replay:
        world.send()
        assert world.read(intent).status == Status.UNKNOWN
        Intent.objects.filter(pk=intent.pk).update(next_attempt_at=times.now())
    before = world.posts(intent)
    (claimed,) = dispatch.claim(slots=1)
    time.sleep(max(0.0, (until - times.now()).total_seconds()) + 0.02)
    came = dispatch.send(claimed)
    assert isinstance(came, transport.Reply)
    assert (came.maybe_sent, came.reason) == (False, "too_late")
    dispatch.save(claimed, came)
    world.sweep()
    assert world.posts(intent) == before == int(replay)
    assert world.read(intent).status == (Status.UNKNOWN if replay else Status.CANCELLED)
    assert world.send() == 0


@pytest.mark.parametrize("executor", ["landed", "caller"])
def test_an_approval_after_its_time_sends_nothing(world: World, executor: str) -> None:
    """The clock stood still: a person approves what nobody may send any more."""
    change(world, limits={"EUR": {"approve_above": 1_000}}, send_before_s=60, approval_expires_s=DAY_S)
    api = make_caller(world.kind)
    intent = api.intent(subject="order-1", executor=executor)
    world.later(61)
    decide(world.review(intent), make_person(), Choice.APPROVE, reason=DecisionReason.JUSTIFIED)
    assert world.send() == 0
    if executor == "caller":
        with pytest.raises(PastSendBefore):
            callers.claim(intent.pk, claim_token="t-1", actor_id="agent:1")
    world.sweep()
    assert expired(world, intent)


def test_what_nobody_approved_in_time_is_withdrawn_and_says_so(world: World) -> None:
    change(world, limits={"EUR": {"approve_above": 1_000}}, approval_expires_s=3_600)
    api = make_caller(world.kind)
    intent = api.intent(subject="order-1")
    world.later(3_599)
    world.sweep()
    assert world.read(intent).status == Status.HELD
    world.later(2)
    world.sweep()
    shown = api.get(f"/intents/{intent.pk}").json()
    assert (shown["status"], shown["status_reason"], shown["review"]) == ("cancelled", "approval_expired", None)
    assert "Nobody approved it in time" in shown["message"]
    assert (shown["next_step"], shown["may_propose_again"]) == ("done", True)
    assert (world.send(), world.posts(intent)) == (0, 0)
    assert world.read(intent).guard_key is None


def test_in_process_the_same_key_after_its_time_may_not_send(world: World) -> None:
    soon = times.now() + timedelta(seconds=30)
    fields: dict[str, Any] = {"executor": "caller", "request_key": "k-1", "send_before": soon}
    intent = world.propose("order-1", **fields)
    assert intent.lease_until == intent.attempts.get().lease_until
    assert intent.lease_until is not None
    assert intent.lease_until <= soon
    actions.mark_not_sent(intent.pk, "connection refused")
    world.later(31)
    with pytest.raises(PastSendBefore) as told:
        world.propose("order-1", **fields)
    assert isinstance(told.value, MayHaveHappened), "whoever catches that sends nothing"
    assert intent.attempts.count() == 1


def test_overdue_after_a_callers_trusted_not_sent_it_is_failed_and_says_so(world: World) -> None:
    """That nothing was sent is the caller's word, so it is not called withdrawn; the reason is the same."""
    change(world, reports_trusted=True, send_before_s=60)
    api = make_caller(world.kind)
    by_word, untouched = (api.recorded(subject=s, executor="caller") for s in ("order-1", "order-2"))
    api.post(f"/intents/{by_word['id']}/attempts", {"claim_token": "t-1"})
    assert report(api, by_word["id"], "not_sent").json()["status"] == "recorded"
    world.later(61)
    problem(api.post(f"/intents/{by_word['id']}/attempts", {"claim_token": "t-2"}), 409, "past_send_before")
    world.sweep()
    shown = [api.get(f"/intents/{one['id']}").json() for one in (by_word, untouched)]
    assert [(one["status"], one["status_reason"]) for one in shown] == [
        ("failed", "expired"),
        ("cancelled", "expired"),
    ]
    assert [one["settled_by"] for one in shown] == ["answer", "nothing_sent"]
