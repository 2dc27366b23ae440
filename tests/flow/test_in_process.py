"""The in-process API, as a Django service in the same project uses it."""

import pytest
from django.db import transaction

from actions import services as actions
from actions.errors import InsideTransaction, Invalid, MayHaveHappened, NotApproved, NotExecutedByCaller
from actions.models import Attempt, Intent
from actions.statuses import Status
from reconciliation.models import Verdict
from tests.flow.world import World


def test_the_callers_own_flow_from_the_readme(world: World) -> None:
    intent = world.propose("order-4812", executor="caller")
    assert intent.status == Status.SUBMITTED
    assert Attempt.objects.get(intent=intent).number == 1
    reply = world.sandbox.refund("order-4812", key=intent.idempotency_key)
    found = actions.mark_confirmed(intent.pk, reply.json)
    assert (found.status, found.external_id) == ("confirmed", reply.json["id"])


def test_a_time_out_is_unknown_and_the_ledger_tells(world: World) -> None:
    intent = world.propose("order-50", executor="caller")
    world.sandbox.refund("order-50", key=intent.idempotency_key)
    assert actions.mark_unknown(intent.pk, TimeoutError("read")).status == Status.UNKNOWN
    assert world.check(intent).verdict == Verdict.MATCH
    assert world.read(intent).status == Status.CONFIRMED


def test_inside_an_open_transaction_recording_for_the_caller_is_refused(world: World) -> None:
    with transaction.atomic(), pytest.raises(InsideTransaction, match="rollback"):
        world.propose("order-51", executor="caller")
    assert Intent.objects.count() == 0


def test_a_transaction_opened_after_recording_rolls_back_and_the_intent_is_still_there(world: World) -> None:
    intent = world.propose("order-52", executor="caller")
    with pytest.raises(ZeroDivisionError), transaction.atomic():
        world.sandbox.refund("order-52", key=intent.idempotency_key)
        _ = 1 / 0
    found = world.read(intent)
    assert (found.status, found.attempts.count()) == ("submitted", 1)
    world.later(60)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    world.check(intent)
    assert world.read(intent).status == Status.CONFIRMED


def test_a_caller_that_crashed_and_comes_again_may_not_send(world: World) -> None:
    world.propose("order-53", executor="caller", request_key="run-1/step-2")
    with pytest.raises(MayHaveHappened):
        world.propose("order-53", executor="caller", request_key="run-1/step-2")
    assert Intent.objects.count() == 1


def test_proven_not_sent_may_be_claimed_again(world: World) -> None:
    intent = world.propose("order-54", executor="caller", request_key="k")
    assert actions.mark_not_sent(intent.pk, "refused to connect").status == Status.RECORDED
    again = world.propose("order-54", executor="caller", request_key="k")
    assert (again.pk, again.status, again.attempts.count()) == (intent.pk, "submitted", 2)


def test_a_callers_intent_above_the_limit_waits_for_a_person(world: World) -> None:
    with pytest.raises(NotApproved):
        world.propose("order-55", "10000.01", executor="caller")
    assert Intent.objects.get().status == Status.HELD


def test_marking_what_landed_sends_changes_nothing(world: World) -> None:
    intent = world.propose("order-56")
    for mark in (
        lambda: actions.mark_confirmed(intent.pk, {"id": "re_1"}),
        lambda: actions.mark_failed(intent.pk, "no"),
        lambda: actions.mark_unknown(intent.pk),
        lambda: actions.mark_not_sent(intent.pk, "x"),
    ):
        with pytest.raises(NotExecutedByCaller):
            mark()
    found = world.read(intent)
    assert (found.status, found.version, found.evidence.count()) == ("recorded", 1, 0)


def test_a_refusal_without_an_answer_is_no_refusal(world: World) -> None:
    intent = world.propose("order-57", executor="caller")
    with pytest.raises(Invalid):
        actions.mark_failed(intent.pk, "")
    assert actions.mark_failed(intent.pk, {"error": "insufficient"}).status == Status.FAILED


def test_a_float_is_no_amount(world: World) -> None:
    with pytest.raises(Invalid, match="float"):
        actions.record_intent(
            kind=world.kind.name,
            subject="o",
            amount=50.0,
            currency="EUR",
            executor="landed",  # type: ignore[arg-type]
        )


def test_a_late_report_after_the_lease_still_counts(world: World) -> None:
    intent = world.propose("order-58", executor="caller")
    world.later(60)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    assert actions.mark_confirmed(intent.pk, {"id": "re_9"}).status == Status.CONFIRMED


def test_dispatch_never_touches_what_the_caller_carries_out(world: World) -> None:
    intent = world.propose("order-59", executor="caller")
    actions.mark_not_sent(intent.pk, "refused")
    assert world.send() == 0
    assert world.posts(intent) == 0
