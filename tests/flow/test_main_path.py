"""From the proposal to the truth, through every part, with the sandbox as the world."""

import pytest

from actions import history
from actions.statuses import Status
from reconciliation.models import Verdict
from tests.flow.world import World


def test_a_refund_that_is_answered_is_confirmed_with_the_downstreams_id(world: World) -> None:
    intent = world.propose("order-1")
    assert intent.status == Status.RECORDED
    world.send()
    intent = world.read(intent)
    (entry,) = world.booked(intent)
    assert (intent.status, intent.settled_by, intent.external_id) == ("confirmed", "answer", entry["id"])
    assert entry["idempotency_key"] == intent.idempotency_key
    assert (intent.settled_amount, intent.guard_key) == ("50.00", None)
    assert history.faults(intent) == []


def test_a_lost_response_is_unknown_and_then_found_in_the_ledger(world: World) -> None:
    world.sandbox.order_fault("order-2", "lose_response")
    intent = world.propose("order-2")
    world.send()
    intent = world.read(intent)
    assert (intent.status, intent.status_reason) == ("unknown", "closed")
    assert world.send() == 0, "an unknown intent is never sent again"
    check = world.check(intent)
    intent = world.read(intent)
    assert check.verdict == Verdict.MATCH
    assert (intent.status, intent.settled_by) == ("confirmed", "ledger")
    assert intent.external_id == world.booked(intent)[0]["id"]
    assert world.posts(intent) == 1
    assert history.faults(intent) == []
    assert [t.to_status for t in intent.transitions.all()] == ["recorded", "submitted", "unknown", "confirmed"]


@pytest.mark.parametrize(
    ("fault", "status", "effects"),
    [
        ("lose_response", "unknown", 1),
        ("reset", "unknown", 1),
        ("silent", "unknown", 1),
        ("slow", "unknown", 1),
        ("error_500_booked", "unknown", 1),
        ("error_500_not_booked", "unknown", 0),
        ("error_504_booked", "unknown", 1),
        ("cut_body", "unknown", 1),
        ("html_200", "unknown", 1),
        ("wrong_amount_200", "unknown", 1),
        ("cut_without_length", "unknown", 1),
        ("bad_gzip", "unknown", 1),
        ("trickle_headers", "unknown", 1),
        ("trickle_body", "unknown", 1),
        ("conflict_409", "unknown", 0),
        ("too_many_429", "unknown", 0),
        ("redirect_307", "unknown", 0),
        ("redirect_302", "unknown", 0),
        ("reject_422", "failed", 0),
        ("reject_401", "failed", 0),
        ("already_refunded_400", "failed", 0),
        ("pending", "submitted", 1),
    ],
)
def test_each_fault_gives_one_post_and_the_status_that_its_proof_allows(
    world: World, fault: str, status: str, effects: int
) -> None:
    world.sandbox.order_fault("order-3", fault)
    intent = world.propose("order-3")
    world.send()
    assert (world.posts(intent), len(world.booked(intent))) == (1, effects)
    assert world.read(intent).status == status
    assert history.faults(world.read(intent)) == []


def test_while_the_listener_is_closed_nothing_is_sent_and_it_is_tried_again(world: World) -> None:
    world.sandbox.call("POST", "/_control/faults", {"fault": "refuse_connection", "seconds": 1})
    intent = world.propose("order-4")
    world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason, found.first_maybe_sent_at) == ("recorded", "not_sent", None)
    assert found.attempts.get().reason == "connect_refused"
    assert found.next_attempt_at is not None
