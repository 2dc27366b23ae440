"""A refund in LangGraph whose node dies after proposing: it is resumed, and there is one refund.

    make demo                                     # prints base_url, agent_token and sandbox_url
    LANDED_URL=http://127.0.0.1:… LANDED_TOKEN=… python client/examples/langgraph_refund.py

With LANDED_SANDBOX=<sandbox_url> the payments service books the refund and its answer is lost.
"""

import os
import sys
from typing import TypedDict
from uuid import uuid4

import httpx
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import RetryPolicy

from landed_client import Landed
from landed_client.adapters.langgraph import Landing, propose_node, wait_node
from landed_client.proposals import Proposing


class State(TypedDict, total=False):
    order: str
    amount: str
    landed: Landing


crashes = iter([True])


def refund_of(state: State) -> Proposing:
    return {"kind": "refund", "subject": state["order"], "amount": state["amount"], "currency": "EUR"}


def dies_once(state: State) -> None:
    """Stands for a deploy in the middle of a run."""
    if next(crashes, False):
        raise ConnectionError("the process was stopped")


def main() -> int:
    order = f"order-{uuid4().hex[:8]}"
    if sandbox := os.environ.get("LANDED_SANDBOX"):
        httpx.post(f"{sandbox}/_control/faults", json={"order": order, "fault": "lose_response"}).raise_for_status()
    with Landed(os.environ["LANDED_URL"], os.environ["LANDED_TOKEN"]) as landed:
        propose, wait = propose_node(landed, refund_of), wait_node(landed, timeout=5)

        def propose_and_die_once(state: State, config) -> dict:  # type: ignore[no-untyped-def,type-arg]
            said = propose(state, config)
            dies_once(state)
            return said

        graph = (
            StateGraph(State)
            .add_node("propose", propose_and_die_once, retry_policy=RetryPolicy(initial_interval=0.1))
            .add_node("wait", wait)
            .add_edge(START, "propose")
            .add_edge("propose", "wait")
            .add_conditional_edges(
                "wait", lambda state: "wait" if state["landed"]["next_step"] == "wait" else "__end__"
            )
            .compile(checkpointer=InMemorySaver())
        )
        thread = {"configurable": {"thread_id": f"ticket-{order}"}}
        for step in graph.stream({"order": order, "amount": "50.00"}, thread, stream_mode="updates"):
            print("\n".join(f"{node}: {update['landed']['told']}" for node, update in step.items()))
        recorded = landed.actions.list(subject=order).data
        print(f"{len(recorded)} intent, {recorded[0].outcome}")
        return 0 if len(recorded) == 1 and recorded[0].outcome == "confirmed" else 1


if __name__ == "__main__":
    sys.exit(main())
