"""Nothing ends in silence: whatever nobody would look at again reaches a person."""

from itertools import product

import pytest

from actions import outcomes, transitions
from actions.models import ClosedBy, Downstream, Intent, Kind, LookUp, Replay, Result
from actions.outcomes import Outcome
from actions.statuses import TRANSITIONS, Actor, Status
from reconciliation import sweep
from reconciliation.models import Review
from tests.core import steps
from tests.factories import make_intent
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


# Every way into "unknown" that the table of statuses knows, under every way to look and to send again.
INTO_UNKNOWN = [(from_, who) for (from_, to), who in TRANSITIONS.items() if to is Status.UNKNOWN]
WAYS = sorted((str(from_), str(actor)) for from_, who in INTO_UNKNOWN for actor in who)
POLICIES = list(product(LookUp.values, Replay.values, ("landed", "caller")))


def brought_to(status: Status, executor: str) -> Intent:
    to = Status.HELD if status is Status.HELD else Status.RECORDED
    intent = make_intent(Kind.objects.get(), to=to, executor=executor)
    if status is Status.SUBMITTED:
        attempt = steps.submit(intent)
        attempt.result, attempt.reason, attempt.closed_by = Result.NO_ANSWER, "read_timeout", ClosedBy.ANSWER
        attempt.closed_at = attempt.claimed_at
        attempt.save()
    return Intent.objects.get(pk=intent.pk)


def somebody_will_look(intent: Intent) -> bool:
    """A look, or a sending of its key, has its time; or a person has a case that is due."""
    intent.refresh_from_db()
    planned = intent.next_check_at is not None or intent.next_attempt_at is not None
    return planned or Review.objects.filter(intent=intent, closed_at=None, due_at__isnull=False).exists()


@pytest.mark.parametrize(("look_up", "replay", "executor"), POLICIES)
def test_whoever_makes_it_unknown_somebody_will_look_and_if_nobody_does_a_person_is_asked(
    world: World, look_up: str, replay: str, executor: str
) -> None:
    assert len(WAYS) >= 7, "the table has not shrunk"
    Downstream.objects.update(look_up=look_up)
    Kind.objects.update(replay=replay)
    intents = []
    for from_, actor in WAYS:
        intent = brought_to(Status(from_), executor)
        transitions.apply(
            intent.pk,
            expected=Status(from_),
            to=Status.UNKNOWN,
            actor=Actor(actor),
            actor_id="x:1",
            reason="read_timeout",
        )
        intents.append(intent)
    world.sweep()
    assert [somebody_will_look(intent) for intent in intents] == [True] * len(WAYS)
    world.later(15 * 60 + 20 * 60)  # "review after", and then some; no worker, no service, no person did anything
    world.sweep()
    cases = Review.objects.filter(closed_at=None, intent__in=intents)
    assert cases.count() == len(WAYS)


@pytest.mark.parametrize("look_up", LookUp.values)
def test_what_was_accepted_and_never_finishes_reaches_a_person(world: World, look_up: str) -> None:
    Downstream.objects.update(look_up=look_up)
    intent = make_intent(world.kind)
    outcomes.apply_outcome(
        steps.submit(intent).pk,
        Outcome(result=Result.ACCEPTED, reason="accepted", external_id="re_1"),
        actor=Actor.WORKER,
        actor_id="worker:1",
        closed_by=ClosedBy.ANSWER,
    )
    world.sweep()
    assert somebody_will_look(intent)
    world.later(15 * 60 + 20 * 60)
    world.sweep()
    assert world.review(intent).reasons.get().code == "still_unknown"
