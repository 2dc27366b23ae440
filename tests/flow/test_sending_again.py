"""A person sends the same key again: inside its window, and never when something speaks against it."""

from collections.abc import Callable

import pytest

from actions.errors import BadDecision, SeenIsStale
from actions.models import Downstream, Intent, Kind
from actions.statuses import Status
from reconciliation.models import Choice, Review
from reconciliation.reviews import options
from tests.factories import make_person
from tests.flow.test_deciding import decide
from tests.flow.world import World

DAY = 86_400


@pytest.fixture
def lost(world: World) -> Intent:
    """Booked, never answered, nobody can look into the books, so a person is asked at once."""
    Downstream.objects.update(look_up="none", dedupe_window_s=DAY)
    Kind.objects.update(send_before_s=None)
    world.sandbox.order_fault("order-1", "lose_response")
    intent = world.propose("order-1")
    world.send()
    return world.read(intent)


def offered(world: World, intent: Intent) -> options.Option | None:
    found = options.options(world.review(intent), person=make_person())
    return next((option for option in found if option.choice is Choice.SEND_AGAIN), None)


def test_it_sends_the_same_key_once_more_and_tells_what_the_downstream_said(world: World, lost: Intent) -> None:
    review = world.review(lost)
    option = offered(world, lost)
    assert option is not None
    assert (option.blocked, option.until is not None) == ("", True)
    decide(review, make_person(), Choice.SEND_AGAIN)
    assert world.read(lost).status == Status.UNKNOWN, "until a worker has begun"
    assert Review.objects.get(pk=review.pk).closed_how == "decision"
    assert world.send() == 1
    found = world.read(lost)
    assert (found.status, found.settled_by) == ("confirmed", "answer")
    assert {one["idempotency_key"] for one in world.sandbox.requests("order-1")} == {lost.idempotency_key}
    assert (world.posts(lost), len(world.booked(lost))) == (2, 1)


def test_when_that_brings_no_answer_either_somebody_is_asked_again(world: World, lost: Intent) -> None:
    world.sandbox.order_fault("order-1", "silent")
    first = world.review(lost)
    decide(first, make_person(), Choice.SEND_AGAIN)
    world.send()
    assert world.read(lost).status == Status.UNKNOWN
    assert world.review(lost).pk != first.pk


def test_at_23_h_59_min_it_may_be_sent_again_and_at_25_h_the_reason_is_given(world: World, lost: Intent) -> None:
    world.later(DAY - 60)
    option = offered(world, lost)
    assert option is not None
    assert option.blocked == ""
    world.later(3_600)
    option = offered(world, lost)
    assert option is not None
    assert "could be carried out a second time" in option.blocked
    with pytest.raises(BadDecision, match="second time"):
        decide(world.review(lost), make_person("supervisor"), Choice.SEND_AGAIN)
    assert world.posts(lost) == 1


def test_decided_in_time_and_taken_up_too_late_sends_nothing(world: World, lost: Intent) -> None:
    world.later(DAY - 60)
    decide(world.review(lost), make_person(), Choice.SEND_AGAIN)
    world.later(120)
    assert world.send() == 0
    world.sweep()
    assert Review.objects.filter(intent=lost, closed_at=None).count() == 0, "what was decided may be on its way"
    world.later(301)
    world.sweep()
    assert (world.posts(lost), world.read(lost).status) == (1, Status.UNKNOWN)
    assert world.review(lost).closed_at is None


@pytest.mark.parametrize(
    ("change", "offers", "why"),
    [
        (lambda: Downstream.objects.update(dedupes=False, dedupe_window_s=None), False, ""),
        (lambda: Intent.objects.update(executor="landed", first_maybe_sent_at=None), False, ""),
        (lambda: Kind.objects.update(paused=True), True, "paused"),
        (lambda: Downstream.objects.update(paused=True), True, "paused"),
        (lambda: Review.objects.update(verdict="match"), True, "shows it already"),
        (lambda: Review.objects.update(verdict="duplicate"), True, "shows it already"),
    ],
    ids=["no longer dedupes", "never sent", "kind paused", "downstream paused", "found", "found twice"],
)
def test_it_is_not_offered_or_says_why_not(
    world: World, lost: Intent, change: Callable[[], object], offers: bool, why: str
) -> None:
    change()
    option = offered(world, lost)
    assert (option is not None) is offers
    if option is not None:
        assert why in option.blocked
    with pytest.raises(BadDecision):
        decide(world.review(lost), make_person(), Choice.SEND_AGAIN)
    assert world.send() == 0


def test_the_book_is_looked_into_at_that_moment_and_if_it_shows_it_nothing_is_sent(world: World) -> None:
    Kind.objects.update(review_after_s=0)
    world.sandbox.call("POST", "/_control/config", {"ledger_lag_s": 2})
    world.sandbox.order_fault("order-2", "lose_response")
    intent = world.propose("order-2")
    world.send()
    assert world.check(intent).verdict in ("too_early", "absent")
    review = world.review(intent)
    world.sandbox.call("POST", "/_control/config", {"ledger_lag_s": 0})

    with pytest.raises(SeenIsStale):
        decide(review, make_person(), Choice.SEND_AGAIN)
    world.send()
    assert world.posts(intent) == 1


def test_above_the_second_limit_two_people_send_it_again(world: World) -> None:
    Downstream.objects.update(look_up="none")
    world.sandbox.order_fault("order-3", "lose_response")
    intent = world.propose("order-3", "6000.00")
    world.send()
    review = world.review(intent)
    assert decide(review, make_person(), Choice.SEND_AGAIN).state == "second_person"
    assert world.send() == 0
    assert decide(review, make_person(), Choice.SEND_AGAIN).state == "effective"
    assert world.send() == 1
    assert world.read(intent).status == Status.CONFIRMED
