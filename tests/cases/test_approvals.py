"""What a person's approval is for: this payload, for a while, and past the guard only in so many words."""

from typing import Any

import pytest

from actions.errors import BadDecision
from actions.models import Intent, Kind
from actions.statuses import Status
from reconciliation.models import Choice, Decision, DecisionReason, Review
from tests.api.calling import make_caller
from tests.factories import make_person
from tests.flow.test_deciding import decide
from tests.flow.world import World
from tests.flushing import without_triggers

WHY = DecisionReason.JUSTIFIED


def held(world: World, *, executor: str = "landed", **limits: int) -> Intent:
    """An intent for 40.00 that waits for approval."""
    Kind.objects.update(limits={"EUR": {"approve_above": 1_000} | limits})
    world.kind.refresh_from_db()
    return make_caller(world.kind).intent(subject="order-1", amount="40.00", executor=executor)


def approve(world: World, intent: Intent, **more: Any) -> Any:
    return decide(world.review(intent), make_person(), Choice.APPROVE, reason=WHY, **more)


def change_amount(intent: Intent) -> None:
    """Somebody writes into the table, past the triggers."""
    with without_triggers():
        Intent.objects.filter(pk=intent.pk).update(amount_minor=400_00)


def test_what_was_changed_after_its_approval_is_not_sent_and_a_person_looks_again(world: World) -> None:
    intent = held(world)
    approve(world, intent)
    change_amount(intent)
    world.send()
    assert world.posts(intent) == 0
    assert world.read(intent).status == Status.HELD
    assert world.review(intent).purpose == "approval"


# The guard


def second(world: World) -> tuple[Intent, Intent]:
    """An unknown intent, and another one on its order that waits for a person."""
    Kind.objects.update(duplicate_policy="hold")
    world.kind.refresh_from_db()
    world.sandbox.order_fault("order-1", "error_500_not_booked")
    first = world.propose("order-1")
    world.send()
    other = world.propose("order-1", "20.00")
    assert (world.read(first).status, other.status) == ("unknown", "held")
    return first, other


def test_an_approval_that_waives_nothing_sends_nothing_past_the_guard(world: World) -> None:
    first, other = second(world)
    with pytest.raises(BadDecision, match="waive the guard in so many words"):
        approve(world, other)
    assert not Decision.objects.exists()
    assert (world.read(other).status, world.send(), world.posts(first)) == ("held", 0, 1)


def test_a_waiver_in_so_many_words_sends_it_and_is_remembered(world: World) -> None:
    first, other = second(world)
    approve(world, other, waive_guard=True)
    assert Decision.objects.get(choice=Choice.APPROVE).guard_waived
    assert world.send() == 1
    assert (world.read(other).status, world.read(first).status) == ("confirmed", "unknown")
    assert [entry["amount_minor"] for entry in world.booked(other)] == [2_000]


def test_a_waiver_that_nothing_needs_any_more_waives_nothing(world: World) -> None:
    first, other = second(world)
    for _ in range(2):
        world.later(5)
        world.check(first)
    assert world.read(first).status == Status.FAILED
    approve(world, other, waive_guard=True)
    found = world.read(other)
    assert (found.guard_waived, found.guard_key is not None) == (False, True)


def test_a_vote_that_waives_and_one_that_does_not_are_not_two_votes(world: World) -> None:
    Kind.objects.update(limits={"EUR": {"review_above": 1_000, "two_people_above": 1_500}})
    world.kind.refresh_from_db()
    _, other = second(world)
    assert approve(world, other, waive_guard=True).state == "second_person"
    assert approve(world, other).state == "second_person", "the first vote is void"
    assert world.read(other).status == Status.HELD


def test_naming_what_it_repeats_lets_nothing_past(world: World) -> None:
    """Under "hold" as well: `repeat_of` is for the reviewer to read."""
    api = make_caller(world.kind)
    Kind.objects.update(duplicate_policy="hold")
    first = api.intent(subject="order-1")
    other = api.intent(subject="order-1", repeat_of=str(first.pk))
    assert (other.status, other.guard_key, other.repeat_of_id) == ("held", None, first.pk)
    world.send()
    third = api.intent(subject="order-1", repeat_of=str(first.pk), amount="50.00")
    assert (third.status, third.hold_reasons) == ("held", "look_alike")
    assert world.send() == 0
    assert (world.posts(first), Review.objects.filter(closed_at=None).count()) == (1, 2)
