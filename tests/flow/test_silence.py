"""Nothing ends in silence: whatever nobody would look at again reaches a person."""

from actions import transitions
from actions.models import Intent
from actions.statuses import Actor, Status
from reconciliation import sweep
from reconciliation.models import Review
from tests.flow.test_finding_the_truth import unknown
from tests.flow.world import World


def test_an_unknown_whose_checks_never_come_through_is_asked_of_a_person(world: World) -> None:
    """Every checker is down: checks are due, and nobody makes them."""
    intent = unknown(world, "order-90", booked=True)
    world.later(600)
    world.sweep()
    assert Review.objects.count() == 0, "its kind lets it wait so long, and checks ask by themselves"
    world.later(301)
    world.sweep()
    assert [reason.code for reason in world.review(intent).reasons.all()] == ["still_unknown"]
    world.sweep()
    assert Review.objects.count() == 1


def test_what_was_held_before_the_sweep_came_to_it_keeps_its_approval_case(world: World) -> None:
    intent = world.propose("order-91")
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.HELD,
        actor=Actor.REVIEWER,
        actor_id="person:1",
        reason="held_on_dispute",
        hold_reasons="contradiction",
    )
    assert sweep._ask(intent.pk) is False
    assert world.review(intent).purpose == "approval"
    assert Intent.objects.get(pk=intent.pk).status == Status.HELD
