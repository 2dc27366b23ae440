"""LangGraph: one node proposes, another waits. Both may run again, and only ever mean the same intent.

    graph.add_node("propose", propose_node(landed, refund_of))
    graph.add_node("wait", wait_node(landed, timeout=30))
    graph.add_edge("propose", "wait")

A node runs again when its retry policy says so, after a crash, and from its first line after an interrupt. So the
request key comes from what is then the same again (thread, graph, step, place among its siblings, and what is
wished) and not from the checkpoint's id, which is another one when the last checkpoint was lost with the process.
A later step of the same thread is another wish.

The state's `landed` holds plain JSON, so that every checkpointer can keep it. What became of the action is an answer
in it, never an exception. These nodes raise only when Landed itself can't be reached: then the same node may run
again, by a retry policy or by resuming.
"""

from collections.abc import Callable
from typing import Any, TypedDict

from langchain_core.runnables import RunnableConfig
from langgraph.types import interrupt

from landed_client import Landed, Unavailable
from landed_client.adapters import once
from landed_client.proposals import Proposing


class Landing(TypedDict, total=False):
    """What the state holds: `outcome` is `confirmed`, `failed`, `cancelled`, `pending` or `not_recorded`.

    `told`: for the model. `refused`: the code when this proposal was not recorded; `intent_id` then names the
    earlier intent that stood in its way, if there is one. `next_step`, `ask_again_at`: as the API has them.
    """

    intent_id: str | None
    request_key: str
    outcome: str
    next_step: str
    ask_again_at: str | None
    refused: str | None
    told: str


Node = Callable[..., dict[str, Any]]


def propose_node(landed: Landed, proposal: Callable[[Any], Proposing], *, into: str = "landed") -> Node:
    """A node that records `proposal(state)` and returns at once. Needs a checkpointer and a thread_id.

    A `request_key` in the proposal is taken as it is: give one (a ticket's id, say) where the whole graph is started
    again from its input. Raises Unavailable, safely repeatable; TypeError, ValueError for fields that mean nothing.
    """

    def propose(state: Any, config: RunnableConfig) -> dict[str, Any]:
        fields = proposal(state)
        place, thread = _place(config), str(config["configurable"].get("thread_id") or "")
        if not thread and not fields.get("request_key"):
            raise ValueError(
                "Without a thread_id nothing tells this step from any other: give one, or a request_key."
            )
        key = fields.get("request_key") or once.request_key(place, fields)
        named: Proposing = once.in_run({**fields, "request_key": key}, thread or key)
        told = landed._carry_out(once.propose(named, landed._setting))
        if isinstance(told.error, Unavailable):
            raise told.error
        return {into: _kept(told, told.refused)}

    return propose


def wait_node(landed: Landed, *, timeout: float = 30.0, pause_for_person: bool = False, into: str = "landed") -> Node:
    """A node that reads what became of it, for `timeout` seconds at most; then the state says `pending`.

    `pause_for_person`: interrupts the graph while a person has to decide; resume it, with any value, when there is
    news (webhook `intent.settled`, or `ask_again_at`). It pauses again while there is none.
    """

    def wait(state: Any) -> dict[str, Any]:
        kept: Landing = state[into] if isinstance(state, dict) else getattr(state, into)
        if (intent_id := kept.get("intent_id")) is None:
            return {into: kept}
        while True:
            refused = kept.get("refused")
            told = landed._carry_out(once.follow(intent_id, landed._setting, wait=timeout, refused=refused))
            now = _kept(told, refused) | {"request_key": kept["request_key"]}
            if not pause_for_person or now["next_step"] != "wait_for_person":
                return {into: now}
            interrupt(now)

    return wait


def _place(config: RunnableConfig) -> str:
    """Thread, graph around, step and place in it. The last part of the namespace is this task's own, made of ids."""
    meta = config["metadata"]
    around = str(meta.get("langgraph_checkpoint_ns", "")).rpartition("|")[0]
    at = (around, meta["langgraph_node"], meta["langgraph_step"], meta.get("langgraph_path"))
    return repr((str(config["configurable"].get("thread_id")), *at))


def _kept(told: once.Told, refused: str | None) -> dict[str, Any]:
    intent = told.intent
    outcome = "not_recorded" if intent is None and not told.open else "pending" if intent is None else intent.outcome
    return {
        "intent_id": intent and intent.id,
        "request_key": told.request_key,
        "outcome": outcome,
        "next_step": intent.step if intent else "done" if outcome == "not_recorded" else "wait",
        "ask_again_at": intent.ask_again_at.isoformat() if intent and intent.ask_again_at else None,
        "refused": refused,
        "told": told.text,
    }
