"""Agents that call again whatever they read, and again after a crash, against every fault of the payments service."""

import asyncio
import os
from collections.abc import Iterator
from itertools import count
from typing import Any

import agents
import pytest
from agents import Agent as OpenAIAgent
from agents import Runner
from agents.testing import ScriptedModel, assistant_message, function_call
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from pydantic_ai import DeferredToolRequests
from pydantic_ai.messages import ToolCallPart

from landed_client import AsyncLanded, Landed
from landed_client.adapters.langgraph import propose_node, wait_node
from landed_client.adapters.openai_agents import action_tool
from landed_client.adapters.pydantic_ai import resolve
from landed_client.proposals import Proposing
from landed_client.testing import Faults, Server
from tests.stubborn import READS_LIKE_AN_ERROR

# Each fault meets one framework in turn, a lost response all of them; with this set, every fault meets all of them.
EVERY_FAULT_EVERYWHERE = bool(os.environ.get("LANDED_EVERY_FAULT"))
CALLS = 2
WAIT_S = 1
SETTLED_WITHIN_S = 4
# They hit every order at once, or the look into the ledger and not the sending.
NOT_BY_ORDER = ("refuse_connection", "ledger_error", "ledger_page_2_error")

agents.set_tracing_disabled(True)


def refund(order: str) -> Proposing:
    """Refunds an order."""
    return {"kind": "refund", "subject": order, "amount": "50.00", "currency": "EUR"}


async def in_openai_agents(landed: AsyncLanded, order: str, calls: int) -> list[str]:
    tool = action_tool(landed, refund, run=lambda _: f"run-{order}", wait=WAIT_S)
    turns = [[function_call("refund", {"order": order}, call_id=f"c-{n}")] for n in range(calls)]
    agent = OpenAIAgent(name="desk", model=ScriptedModel([*turns, [assistant_message("done")]]), tools=[tool])
    result = await Runner.run(agent, "a refund, please")
    return [str(one.raw_item["output"]) for one in result.new_items if one.type == "tool_call_output_item"]


async def in_pydantic_ai(landed: AsyncLanded, order: str, calls: int) -> list[str]:
    told = []
    for n in range(calls):
        requests = DeferredToolRequests(calls=[ToolCallPart("refund", {"order": order}, tool_call_id=f"c-{n}")])
        resolved = await resolve(landed, requests, [refund], run=f"run-{order}", wait=WAIT_S)
        told.append(resolved.told[f"c-{n}"].text)
    return told


async def in_langgraph(landed: Landed, order: str, calls: int) -> list[str]:
    """A second turn of the graph would be a second wish, so this one goes round only where it reads an error."""
    told, rounds = [], count(1)

    def again(state: Any) -> str:
        told.append(state["landed"]["told"])
        return "propose" if READS_LIKE_AN_ERROR.search(told[-1]) and next(rounds) < calls else "__end__"

    graph = StateGraph(dict).add_node("propose", propose_node(landed, lambda _: refund(order)))
    graph.add_node("wait", wait_node(landed, timeout=WAIT_S)).add_edge(START, "propose").add_edge("propose", "wait")
    graph.add_conditional_edges("wait", again, ["propose", "__end__"])
    await graph.compile(checkpointer=InMemorySaver()).ainvoke({}, {"configurable": {"thread_id": f"run-{order}"}})
    return told


def effects(faults: Faults, order: str) -> list[dict[str, Any]]:
    """What was booked and stands; a refund that the service itself failed later may be asked for again."""
    return [row for row in faults.booked(order) if row["status"] != "failed"]


@pytest.fixture
def clients(landed_server: Server) -> Iterator[tuple[Landed, AsyncLanded]]:
    landed_server.allow_per_minute(100_000)
    with Landed(landed_server.base_url, landed_server.token) as waiting:
        yield waiting, AsyncLanded(landed_server.base_url, landed_server.token)


def test_no_fault_makes_a_stubborn_agent_do_it_twice(
    clients: tuple[Landed, AsyncLanded], landed_faults: Faults
) -> None:
    waiting, landed = clients
    ways = {
        "langgraph": (in_langgraph, waiting),
        "openai": (in_openai_agents, landed),
        "pydantic": (in_pydantic_ai, landed),
    }
    tried: dict[str, Any] = {}
    for number, fault in enumerate(sorted(set(landed_faults.names) - set(NOT_BY_ORDER))):
        everywhere = EVERY_FAULT_EVERYWHERE or fault == "lose_response"
        for name in ways if everywhere else [list(ways)[number % len(ways)]]:
            order = landed_faults.new_order(f"{name}-{fault}")
            landed_faults.order(order, fault)
            tried[order] = ways[name]

    async def settled(order: str) -> None:
        (newest, *_) = (await landed.actions.list(subject=order)).data
        await landed.actions.wait(newest.id, timeout=SETTLED_WITHIN_S)

    async def standing(order: str) -> int:
        """Intents of which something came or may come. What is settled the guard lets go: then only the key knows."""
        return sum(
            not one.done or one.outcome == "confirmed" for one in (await landed.actions.list(subject=order)).data
        )

    async def run_crash_and_run_again() -> tuple[list[list[str]], list[int]]:
        first = await asyncio.gather(*(way(client, order, CALLS) for order, (way, client) in tried.items()))
        await asyncio.gather(*map(settled, tried))
        await asyncio.gather(*(way(client, order, 1) for order, (way, client) in tried.items()))
        stand = await asyncio.gather(*map(standing, tried))
        await landed.close()
        return first, stand

    texts, stand = asyncio.run(run_crash_and_run_again())
    told = dict(zip(tried, texts, strict=True))
    booked = {order: effects(landed_faults, order) for order in told}
    assert {order: rows for order, rows in booked.items() if len(rows) > 1} == {}
    assert {order: count for order, count in zip(tried, stand, strict=True) if count > 1} == {}
    lost = [text for order in told if "-lose_response-" in order for text in told[order]]
    assert len(lost) == 2 * CALLS + 1
    assert not any(READS_LIKE_AN_ERROR.search(text) for text in lost)
