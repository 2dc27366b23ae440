"""Every fault of the sandbox, from the one POST to the end of the story: what is settled is what the books say."""

from dataclasses import dataclass

import pytest

from actions import history
from actions.models import Downstream
from actions.statuses import Status
from config.children import wait_until
from sandbox.faults import FAULTS
from tests.flow.world import World


@dataclass(frozen=True)
class Story:
    """`first`: the status and its reason after the only sending; `last`: where looks into the ledger lead."""

    first: tuple[str, str]
    last: str
    effects: int


_LOST = "confirmed", 1
_NOTHING = "failed", 0
STORIES = {
    "lose_response": Story(("unknown", "closed"), *_LOST),
    "reset": Story(("unknown", "reset"), *_LOST),
    "silent": Story(("unknown", "read_timeout"), *_LOST),
    "slow": Story(("unknown", "read_timeout"), *_LOST),
    "trickle_headers": Story(("unknown", "deadline"), *_LOST),
    "trickle_body": Story(("unknown", "deadline"), *_LOST),
    "cut_body": Story(("unknown", "cut_body"), *_LOST),
    "cut_without_length": Story(("unknown", "unreadable_2xx"), *_LOST),
    "bad_gzip": Story(("unknown", "body_undecodable"), *_LOST),
    "html_200": Story(("unknown", "unreadable_2xx"), *_LOST),
    "wrong_amount_200": Story(("unknown", "answer_differs"), *_LOST),
    "error_500_booked": Story(("unknown", "server_error"), *_LOST),
    "error_500_not_booked": Story(("unknown", "server_error"), *_NOTHING),
    "error_504_booked": Story(("unknown", "server_error"), *_LOST),
    "reject_422": Story(("failed", "refused"), *_NOTHING),
    "reject_401": Story(("failed", "refused"), *_NOTHING),
    "conflict_409": Story(("unknown", "conflict"), *_NOTHING),
    "too_many_429": Story(("unknown", "rate_limited"), *_NOTHING),
    "redirect_307": Story(("unknown", "redirect"), *_NOTHING),
    "redirect_302": Story(("unknown", "redirect"), *_NOTHING),
    "pending": Story(("submitted", "claimed"), "submitted", 1),
    "pending_then_failed": Story(("submitted", "claimed"), "failed", 1),
    "already_refunded_400": Story(("failed", "refused"), *_NOTHING),
    "ledger_error": Story(("unknown", "closed"), *_LOST),
    "ledger_page_2_error": Story(("unknown", "closed"), *_LOST),
    "refuse_connection": Story(("recorded", "not_sent"), "confirmed", 1),
}
# These have tests of their own below.
_APART = {"ledger_error", "ledger_page_2_error", "refuse_connection"}
_TIMED = {"silent": 5, "slow": 5, "pending_then_failed": 0.1}


def test_every_fault_has_its_story() -> None:
    assert set(STORIES) == set(FAULTS)


@pytest.mark.parametrize("fault", sorted(set(STORIES) - _APART))
def test_after_one_post_it_is_as_unsure_as_it_must_be_and_ends_as_the_books_say(world: World, fault: str) -> None:
    story = STORIES[fault]
    if story.first[1] in ("read_timeout", "deadline"):
        Downstream.objects.update(deadline_ms=400)
    world.sandbox.order_fault("order-1", fault, **({"seconds": _TIMED[fault]} if fault in _TIMED else {}))
    intent = world.propose("order-1")
    world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason) == story.first
    assert world.posts(intent) == 1
    if fault == "pending_then_failed":
        assert wait_until(lambda: world.booked(intent)[0]["status"] == "failed", within_s=10)
    for _ in range(3):
        world.later(5)
        if not world.read(intent).settled:
            world.check(intent)
        world.send()
    found, booked = world.read(intent), world.booked(intent)
    assert (found.status, len(booked)) == (story.last, story.effects)
    if found.status == Status.CONFIRMED:
        assert found.external_id == booked[0]["id"]
    assert world.posts(intent) == 1, "whatever became of it, it was sent once"
    assert history.faults(found) == []


@pytest.mark.parametrize("fault", ["ledger_error", "ledger_page_2_error"])
def test_a_ledger_that_breaks_proves_nothing_and_is_asked_again(world: World, fault: str) -> None:
    """The entry stands on the second page: a look that broke off after the first has not seen that it is missing."""
    world.sandbox.configure(page_size=1)
    Downstream.objects.update(look_up="subject")
    world.sandbox.refund("order-1", key="somebody-elses")
    world.sandbox.order_fault("order-1", "lose_response")
    intent = world.propose("order-1")
    world.send()
    assert (world.read(intent).status, world.read(intent).status_reason) == STORIES[fault].first
    world.sandbox.order_fault("order-1", fault, times=3)
    for _ in range(3):
        world.later(5)
        check = world.check(intent)
        assert (check.verdict, check.counts_as_absence) == ("unavailable", False)
        assert world.read(intent).status == Status.UNKNOWN
    assert world.check(intent).verdict == "match"
    found = world.read(intent)
    assert (found.status, found.settled_by) == (STORIES[fault].last, "ledger")
    assert len([post for post in world.sandbox.requests("order-1") if post["fault"]]) == 1
    assert history.faults(found) == []


def test_while_the_listener_is_closed_nothing_is_sent_and_afterwards_once(world: World) -> None:
    story = STORIES["refuse_connection"]
    world.sandbox.call("POST", "/_control/faults", {"fault": "refuse_connection", "seconds": 0.5})
    intent = world.propose("order-1")
    world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason, found.first_maybe_sent_at) == (*story.first, None)
    assert wait_until(lambda: listens(world), within_s=10)
    world.later(60)
    world.send()
    found = world.read(intent)
    assert (found.status, len(world.booked(intent)), world.posts(intent)) == (story.last, story.effects, 1)


def listens(world: World) -> bool:
    try:
        return world.sandbox.call("GET", "/_control/config").status == 200
    except ConnectionRefusedError:
        return False
