"""Nothing is decided on facts that the person did not see."""

import time
from typing import Any

import pytest

from actions import callers
from actions.errors import BadDecision, SeenIsStale
from actions.models import Intent, Result
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Choice, Decision, Review
from reconciliation.reviews import deciding, pending
from tests.factories import make_intent, make_person
from tests.flow.test_deciding import decide
from tests.flow.world import World


def add_entry(world: World, intent: Intent, **more: Any) -> None:
    body = {"order": intent.subject, "amount_minor": intent.amount_minor, "currency": "EUR", "type": "refund"}
    body |= {"status": "succeeded", "idempotency_key": intent.idempotency_key}
    assert world.sandbox.call("POST", "/_control/entries", body | more).status == 201


def absent(world: World, order: str, amount: str) -> Intent:
    """Above the review limit and not in the ledger: a person is asked, and "fail" is recommended."""
    world.sandbox.order_fault(order, "error_500_not_booked")
    intent = world.propose(order, amount)
    world.send()
    for _ in range(2):
        world.later(5)
        world.check(intent)
    return world.read(intent)


def test_what_the_ledger_shows_within_the_undo_window_cancels_a_fail_above_the_limit(
    world: World, settings: Any
) -> None:
    """Below the limit the check settles it; above, the status stays and the decision must not go through."""
    settings.LANDED_UNDO_S = 15
    intent = absent(world, "order-10", "640.00")
    decided = decide(world.review(intent), make_person("supervisor"), Choice.FAIL)
    assert decided.state == "undo_window"
    add_entry(world, intent)
    world.check(intent)
    world.later(16)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN, "the ledger shows it"
    assert Decision.objects.filter(choice=Choice.VOID, about=decided.decision).count() == 1
    assert world.review(intent).recommendation == Choice.CONFIRM


def test_a_check_between_the_persons_look_and_the_decision_is_not_overlooked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = absent(world, "order-11", "640.00")
    real = checks.check_by_person

    def and_then_the_machine_looks(*args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        add_entry(world, intent)
        world.check(intent)
        return found

    monkeypatch.setattr(checks, "check_by_person", and_then_the_machine_looks)
    with pytest.raises(SeenIsStale):
        decide(world.review(intent), make_person("supervisor"), Choice.FAIL)
    assert world.read(intent).status == Status.UNKNOWN


def disputed(world: World, order: str) -> Intent:
    intent = absent(world, order, "50.00")
    assert intent.status == Status.FAILED
    add_entry(world, intent)
    world.later(3_700)
    world.check(intent)
    assert world.read(intent).disputed
    return intent


def test_what_a_person_upheld_is_not_disputed_again_over_the_same_facts(world: World) -> None:
    intent = disputed(world, "order-12")
    decide(world.review(intent), make_person(), Choice.UPHOLD, note="It was paid back by phone.")
    for _ in range(3):
        world.later(90_000)
        checks.run(budget_s=5)
    assert not world.read(intent).disputed
    assert Review.objects.filter(intent=intent, closed_at__isnull=True).count() == 0


def test_other_facts_after_an_uphold_are_disputed_again(world: World) -> None:
    intent = disputed(world, "order-13")
    decide(world.review(intent), make_person(), Choice.UPHOLD, note="It was paid back by phone.")
    add_entry(world, intent, amount_minor=4_000)
    world.check(intent)
    assert world.read(intent).disputed


def test_a_disputed_intent_is_not_looked_up_every_half_minute_for_ever(world: World) -> None:
    intent = disputed(world, "order-14")
    before = intent.checks.count()
    for _ in range(10):
        world.later(60)
        checks.run(budget_s=5)
    assert intent.checks.count() - before <= 1


def test_upholding_what_changed_since_the_page_was_opened_decides_nothing(world: World) -> None:
    intent = disputed(world, "order-15")
    review = Review.objects.select_related("intent").get(pk=world.review(intent).pk)
    saw = deciding.seen(review)
    add_entry(world, intent)
    world.check(intent)
    with pytest.raises(SeenIsStale):
        decide(review, make_person(), Choice.UPHOLD, seen=saw, note="I saw one entry.")
    assert world.read(intent).disputed


def test_what_a_caller_called_not_sent_and_then_confirmed_does_not_expire_as_cancelled(world: World) -> None:
    """It is unknown, with a case; "cancelled: nothing was sent" would be a lie, and time settles nothing."""
    intent = make_intent(world.kind, executor="caller")
    callers.claim(intent.pk, claim_token="t", actor_id="agent:1")
    for result in (Result.NOT_SENT, Result.CONFIRMED):
        outcome = callers.reported(result, external_id="re_1")
        callers.report(intent.pk, outcome=outcome, content={"said": result}, actor_id="agent:1")
    assert world.read(intent).status == Status.UNKNOWN
    world.later(90 * 86_400)
    world.sweep()
    found = world.read(intent)
    assert found.status != Status.CANCELLED
    assert Review.objects.filter(intent=intent, closed_at__isnull=True).count() == 1


def test_of_two_votes_and_an_undo_at_the_wrong_moment_nothing_comes_twice(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    intent = absent(world, "order-16", "6000.00")
    one, two = make_person("supervisor"), make_person("supervisor")
    assert decide(world.review(intent), one, Choice.FAIL).state == "second_person"
    second = decide(world.review(intent), two, Choice.FAIL)
    assert second.state == "undo_window"
    with pytest.raises(BadDecision):
        pending.undo(second.decision.pk, person=one)
    world.later(16)
    assert [pending.take_effect(second.decision.pk) for _ in range(3)] == [True, False, False]
    with pytest.raises(BadDecision):
        pending.undo(second.decision.pk, person=two)
    assert intent.transitions.filter(to_status=Status.FAILED).count() == 1
    assert Decision.objects.filter(choice=Choice.EFFECT).count() == 1


@pytest.mark.parametrize("behind_s", [61, 300])
def test_an_entry_without_a_key_from_a_clock_that_is_behind_is_not_taken_for_absence(
    world: World, behind_s: int
) -> None:
    """By the order alone a match needs the time to fit as well, and "anything less is ambiguous" (DESIGN 7), not
    absent: a downstream's clock may be wrong by more than a minute, and it books what we sent all the same."""
    world.sandbox.order_fault("order-20", "error_500_not_booked")
    intent = world.propose("order-20")
    world.send()
    add_entry(world, intent, idempotency_key=None, created=int(time.time()) - behind_s)
    for _ in range(3):
        world.later(5)
        if world.read(intent).status == Status.UNKNOWN:
            world.check(intent)
    assert world.read(intent).status == Status.UNKNOWN
    assert [r.code for r in world.review(intent).reasons.all()] == ["ambiguous"]
