"""The nodes in real graphs with a real checkpointer, against the fake: however often they run, one intent."""

import asyncio
import itertools
from typing import Any, TypedDict

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, RetryPolicy, Send

from landed_client import Unavailable
from landed_client.adapters.langgraph import Landing, Node, propose_node, wait_node
from landed_client.proposals import Proposing
from landed_client.testing import FakeLanded
from tests.stubborn import COURSES, READS_LIKE_AN_ERROR, RefusesLookAlikes, effects, no_network

__all__ = ["no_network"]


class Died(Exception):
    pass


class State(TypedDict, total=False):
    order: str
    amount: str
    landed: Landing


def refund_of(state: State) -> Proposing:
    return {"kind": "refund", "subject": state["order"], "amount": state["amount"], "currency": "EUR"}


def graph_of(propose: Node, wait: Node, saver: InMemorySaver, **policy: Any) -> Any:
    graph = StateGraph(State).add_node("propose", propose, **policy).add_node("wait", wait)
    return graph.add_edge(START, "propose").add_edge("propose", "wait").compile(checkpointer=saver)


def graph_for(fake: FakeLanded, *, timeout: float = 30, pause: bool = False) -> Any:
    landed = fake.client()
    wait = wait_node(landed, timeout=timeout, pause_for_person=pause)
    return graph_of(propose_node(landed, refund_of), wait, InMemorySaver())


def in_thread(name: str = "t-1") -> dict[str, Any]:
    return {"configurable": {"thread_id": name}}


def refund(order: str = "order-1", amount: str = "50.00") -> State:
    return {"order": order, "amount": amount}


def crashing_after(node: Node, times: int = 1) -> Node:
    """Does all its work, and dies before the graph hears of it."""
    runs = itertools.count(1)

    def crash(state: Any, config: Any) -> dict[str, Any]:
        done = node(state, config)
        if next(runs) <= times:
            raise Died("the process died here")
        return done

    # The graph hands out the config only by this annotation.
    crash.__annotations__ = dict(node.__annotations__)
    return crash


def test_it_proposes_waits_and_says_what_became_of_it(fake_landed: FakeLanded) -> None:
    said = graph_for(fake_landed).invoke(refund(), in_thread())["landed"]
    intent = fake_landed.intents()[0]
    assert (said["outcome"], said["next_step"], said["intent_id"]) == ("confirmed", "done", intent["id"])
    assert (intent["context"]["run"], said["refused"]) == ("t-1", None)
    assert fake_landed.sent("order-1") == 1


def test_a_node_that_dies_after_proposing_and_is_resumed_means_the_same_intent(fake_landed: FakeLanded) -> None:
    landed = fake_landed.client()
    dying = crashing_after(propose_node(landed, refund_of), times=2)
    graph = graph_of(dying, wait_node(landed), InMemorySaver())
    for start in (refund(), None):
        with pytest.raises(Died):
            graph.invoke(start, in_thread())
    said = graph.invoke(None, in_thread())["landed"]
    assert [one["id"] for one in fake_landed.intents()] == [said["intent_id"]]
    assert said["refused"] is None
    assert fake_landed.sent("order-1") == 1


def test_a_process_that_dies_with_its_checkpoints_means_the_same_intent(fake_landed: FakeLanded) -> None:
    landed = fake_landed.client()
    dying = graph_of(crashing_after(propose_node(landed, refund_of)), wait_node(landed), InMemorySaver())
    with pytest.raises(Died):
        dying.invoke(refund(), in_thread())
    fake_landed.pass_time(5)
    said = graph_for(fake_landed).invoke(refund(), in_thread())["landed"]
    assert (len(fake_landed.intents()), said["outcome"], said["refused"]) == (1, "confirmed", None)


def test_a_retry_policy_repeats_the_node_and_not_the_action(fake_landed: FakeLanded) -> None:
    landed = fake_landed.client(timeout=2)
    policy = RetryPolicy(initial_interval=0.01, max_attempts=3, jitter=False)
    dying = crashing_after(propose_node(landed, refund_of), times=2)
    graph = graph_of(dying, wait_node(landed), InMemorySaver(), retry_policy=policy)
    assert graph.invoke(refund(), in_thread())["landed"]["outcome"] == "confirmed"
    assert fake_landed.sent("order-1") == 1


def test_landed_out_of_reach_stops_the_graph_and_resuming_means_the_same_intent(fake_landed: FakeLanded) -> None:
    landed = fake_landed.client(timeout=1)
    graph = graph_of(propose_node(landed, refund_of), wait_node(landed), InMemorySaver())
    fake_landed.lose_answers(60)
    with pytest.raises(Unavailable) as raised:
        graph.invoke(refund(), in_thread())
    assert raised.value.may_be_recorded
    fake_landed._lost.clear()
    assert graph.invoke(None, in_thread())["landed"]["outcome"] == "confirmed"
    assert fake_landed.sent("order-1") == 1


def test_a_second_refund_later_in_the_same_thread_is_another_one(fake_landed: FakeLanded) -> None:
    graph = graph_for(fake_landed)
    first = graph.invoke(refund(), in_thread())["landed"]
    second = graph.invoke(refund(), in_thread())["landed"]
    assert first["intent_id"] != second["intent_id"]
    assert (second["outcome"], second["refused"], fake_landed.sent("order-1")) == ("confirmed", None, 2)


def test_two_nodes_side_by_side_with_two_subjects_are_two_intents(fake_landed: FakeLanded) -> None:
    propose = propose_node(fake_landed.client(), refund_of)

    def side_by_side(_: State) -> list[Send]:
        return [Send("propose", refund(order)) for order in ("order-1", "order-2")]

    def one_of_two(state: Any, config: Any) -> dict[str, Any]:
        propose(state, config)
        return {}

    one_of_two.__annotations__ = dict(propose.__annotations__)
    graph = StateGraph(State).add_node("propose", one_of_two).add_conditional_edges(START, side_by_side, ["propose"])
    graph.compile(checkpointer=InMemorySaver()).invoke(refund(), in_thread())
    assert {one["subject"] for one in fake_landed.intents()} == {"order-1", "order-2"}


def test_time_that_runs_out_is_an_answer_in_the_state(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown", "confirmed", every=60)
    said = graph_for(fake_landed, timeout=5).invoke(refund(), in_thread())["landed"]
    assert (said["outcome"], said["next_step"]) == ("pending", "wait")
    assert said["ask_again_at"] is not None
    assert "may have happened" in said["told"]
    assert not READS_LIKE_AN_ERROR.search(said["told"])
    later = wait_node(fake_landed.client(), timeout=90)({"landed": said})["landed"]
    assert (later["outcome"], later["request_key"]) == ("confirmed", said["request_key"])


def test_it_pauses_for_a_person_as_often_as_it_is_resumed_too_early(fake_landed: FakeLanded) -> None:
    graph = graph_for(fake_landed, timeout=1, pause=True)
    paused = graph.invoke(refund(amount="10000.01"), in_thread())
    assert paused["__interrupt__"][0].value["next_step"] == "wait_for_person"
    for _ in range(2):
        paused = graph.invoke(Command(resume="any news?"), in_thread())
        assert len(paused["__interrupt__"]) == 1
    intent_id = paused["landed"]["intent_id"]
    fake_landed.approve(intent_id)
    fake_landed.pass_time(2)
    said = graph.invoke(Command(resume="yes"), in_thread())["landed"]
    assert (said["intent_id"], said["outcome"]) == (intent_id, "confirmed")
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_what_a_person_has_to_decide_is_told_as_held_without_pausing(fake_landed: FakeLanded) -> None:
    said = graph_for(fake_landed, timeout=1).invoke(refund(amount="10000.01"), in_thread())["landed"]
    assert (said["outcome"], said["next_step"]) == ("pending", "wait_for_person")
    fake_landed.reject(said["intent_id"])
    said = wait_node(fake_landed.client())({"landed": said})["landed"]
    assert said["outcome"] == "cancelled"
    assert "repeat_of" not in said["told"]


def test_another_thread_is_shown_the_open_one_and_waits_for_it(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown", "confirmed", every=60)
    graph = graph_for(fake_landed, timeout=1)
    first = graph.invoke(refund(), in_thread())["landed"]
    second = graph.invoke(refund(), in_thread("t-2"))["landed"]
    assert (second["refused"], second["intent_id"]) == ("unsettled_duplicate", first["intent_id"])
    assert second["told"].startswith("Nothing was recorded and nothing was sent by this call")
    assert not READS_LIKE_AN_ERROR.search(second["told"])
    later = wait_node(fake_landed.client(), timeout=120)({"landed": second})["landed"]
    assert (later["outcome"], later["refused"]) == ("confirmed", "unsettled_duplicate")
    assert fake_landed.sent("order-1") == 1


def test_what_was_done_before_is_told_and_not_done_again() -> None:
    fake = RefusesLookAlikes()
    graph = graph_for(fake)
    first, second = (graph.invoke(refund(), in_thread(name))["landed"] for name in ("t-1", "t-2"))
    assert (second["refused"], second["outcome"], second["intent_id"]) == (
        "already_done",
        "confirmed",
        first["intent_id"],
    )
    assert fake.sent("order-1") == 1


def test_what_can_not_be_taken_is_said_in_the_state(fake_landed: FakeLanded) -> None:
    said = graph_for(fake_landed).invoke(refund(amount="50.001"), in_thread())["landed"]
    assert (said["outcome"], said["refused"], said["intent_id"]) == ("not_recorded", "invalid", None)
    assert said["told"].startswith("Nothing was recorded and nothing was sent. These fields can't be taken: amount")


def test_without_a_thread_a_step_has_no_name(fake_landed: FakeLanded) -> None:
    graph = StateGraph(State).add_node("propose", propose_node(fake_landed.client(), refund_of))
    with pytest.raises(ValueError, match="thread_id"):
        graph.add_edge(START, "propose").compile().invoke(refund())


def test_a_key_of_ones_own_survives_a_start_from_the_input(fake_landed: FakeLanded) -> None:
    def keyed(state: State) -> Proposing:
        return {**refund_of(state), "request_key": f"ticket-7-{state['order']}"}

    landed = fake_landed.client()
    graph = graph_of(propose_node(landed, keyed), wait_node(landed), InMemorySaver())
    first, second = (graph.invoke(refund(), in_thread())["landed"] for _ in range(2))
    assert (first["intent_id"], fake_landed.sent("order-1")) == (second["intent_id"], 1)


def test_it_runs_under_asyncio_too(fake_landed: FakeLanded) -> None:
    graph = graph_for(fake_landed, timeout=1, pause=True)

    async def run() -> Any:
        paused = await graph.ainvoke(refund(amount="10000.01"), in_thread())
        fake_landed.approve(paused["landed"]["intent_id"])
        fake_landed.pass_time(2)
        return await graph.ainvoke(Command(resume=""), in_thread())

    assert asyncio.run(run())["landed"]["outcome"] == "confirmed"


@pytest.mark.parametrize("course", COURSES, ids="-".join)
def test_an_agent_that_goes_round_while_it_reads_an_error_has_one_effect_at_most(course: tuple[str, ...]) -> None:
    fake = FakeLanded()
    fake.script("order-1", *course, every=7)
    landed, rounds = fake.client(), itertools.count(1)

    def stubborn(state: State) -> str:
        again = READS_LIKE_AN_ERROR.search(state["landed"]["told"])
        return "propose" if again and next(rounds) < 5 else "__end__"

    graph = StateGraph(State).add_node("propose", propose_node(landed, refund_of))
    graph.add_node("wait", wait_node(landed, timeout=3)).add_edge(START, "propose").add_edge("propose", "wait")
    graph.add_conditional_edges("wait", stubborn, ["propose", "__end__"])
    graph.compile(checkpointer=InMemorySaver()).invoke(refund(), in_thread())
    assert effects(fake, "order-1") <= 1
    # What is settled as failed may be done again, and is: the model reads so.
    assert len(fake.intents()) == (5 if course == ("failed",) else 1)
