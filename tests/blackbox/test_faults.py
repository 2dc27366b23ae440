"""The whole product as real processes: one fault each, and what the books and the agent see afterwards."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.blackbox.agent import Agent

# As processes, the product meets PostgreSQL in tests/chaos, with faults of every kind.
pytestmark = pytest.mark.either_database

UNKNOWN_THEN_FOUND = [
    "lose_response",
    "reset",
    "silent",
    "slow",
    "error_500_booked",
    "error_504_booked",
    "cut_body",
    "html_200",
]


@pytest.mark.parametrize("fault", UNKNOWN_THEN_FOUND)
def test_booked_without_a_usable_answer_is_unknown_blocks_and_is_found_in_the_ledger(
    agent: Agent, fault: str
) -> None:
    order = agent.order(fault)
    agent.order_fault(order, fault)
    first = agent.propose(order)
    assert first.status_code == 201
    intent_id = first.json()["id"]

    unsure = agent.wait(intent_id, ("unknown", "confirmed"))
    again = agent.propose(order, key=f"again-{order}")
    if unsure["status"] == "unknown" and again.status_code == 409:
        problem = again.json()
        assert problem["code"] == "unsettled_duplicate"
        assert problem["intent_id"] == intent_id
        assert "failed" not in unsure["message"]
        assert "try again" not in unsure["message"]

    found = agent.wait(intent_id)
    (entry,) = agent.booked(order)
    (post,) = agent.posts(order)
    assert (found["status"], found["settled_by"], found["external_id"]) == ("confirmed", "ledger", entry["id"])
    assert post["idempotency_key"] == found["idempotency_key"]
    assert agent.steps(intent_id) == [
        ("recorded", "agent"),
        ("submitted", "machine"),
        ("unknown", "machine"),
        ("confirmed", "machine"),
    ]


def test_an_error_that_booked_nothing_ends_as_failed_by_absence(agent: Agent) -> None:
    order = agent.order("e500")
    agent.order_fault(order, "error_500_not_booked")
    found = agent.wait(agent.propose(order).json()["id"])
    assert (found["status"], found["settled_by"], found["may_propose_again"]) == ("failed", "absence", True)
    assert (len(agent.posts(order)), agent.booked(order)) == (1, [])
    assert "absent" in {check["verdict"] for check in agent.history(found["id"])["checks"]}


def test_a_refusal_is_failed_at_once(agent: Agent) -> None:
    order = agent.order("r422")
    agent.order_fault(order, "reject_422")
    found = agent.wait(agent.propose(order).json()["id"])
    assert (found["status"], found["status_reason"], found["settled_by"]) == ("failed", "refused", "answer")
    assert (len(agent.posts(order)), agent.booked(order)) == (1, [])


@pytest.mark.alone  # the fault hits every order
def test_a_closed_listener_only_delays(agent: Agent) -> None:
    order = agent.order("closed")
    reply = requests.post(
        f"{agent.demo.sandbox_url}/_control/faults",
        json={"fault": "refuse_connection", "seconds": 1.5},
        timeout=10,
    )
    assert reply.status_code == 201
    found = agent.wait(agent.propose(order).json()["id"])
    assert found["status"] == "confirmed"
    assert (len(agent.posts(order)), len(agent.booked(order))) == (1, 1)
    assert "unknown" not in [step["to"] for step in agent.history(found["id"])["transitions"]]


def test_fifty_proposals_for_one_order_give_one_intent(agent: Agent) -> None:
    order = agent.order("fifty")
    # Unsettled for as long as fifty proposals take on a busy machine: no answer, and a ledger that can't be read.
    agent.order_fault(order, "silent")
    agent.order_fault(order, "ledger_error", times=2)
    with ThreadPoolExecutor(25) as pool:
        replies = list(pool.map(lambda n: agent.propose(order, key=f"{order}-{n}"), range(50)))
    codes = [reply.status_code for reply in replies]
    assert sorted(set(codes)) == [201, 409], codes
    assert codes.count(201) == 1
    (intent_id,) = [reply.json()["id"] for reply in replies if reply.status_code == 201]
    assert {r.json()["intent_id"] for r in replies if r.status_code == 409} == {intent_id}
    assert agent.wait(intent_id)["status"] == "confirmed"
    assert len(agent.booked(order)) == 1


def test_fifty_repeats_with_one_key_give_one_intent(agent: Agent) -> None:
    order = agent.order("repeats")
    with ThreadPoolExecutor(25) as pool:
        replies = list(pool.map(lambda _: agent.propose(order), range(50)))
    codes = [reply.status_code for reply in replies]
    assert (codes.count(201), codes.count(200)) == (1, 49), codes
    assert len({reply.json()["id"] for reply in replies}) == 1
    assert agent.wait(replies[0].json()["id"])["status"] == "confirmed"
    assert (len(agent.posts(order)), len(agent.booked(order))) == (1, 1)


def test_the_same_key_with_another_amount_is_refused_and_sends_nothing(agent: Agent) -> None:
    order = agent.order("reused")
    first = agent.propose(order, "40.00")
    reply = agent.propose(order, "400.00")
    problem: dict[str, Any] = reply.json()
    assert (reply.status_code, problem["code"], problem["differs"]) == (422, "key_reused", ["amount"])
    agent.wait(first.json()["id"])
    assert [entry["amount_minor"] for entry in agent.booked(order)] == [4000]
