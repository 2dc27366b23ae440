"""The tools under the SDK's own Runner, with a scripted model and the fake. Nothing leaves this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import agents
import pytest
from agents import Agent, FunctionTool, Runner
from agents.mcp import MCPServerStdio
from agents.testing import ScriptedModel, assistant_message, function_call
from mcp.client._memory import InMemoryTransport
from mcp.server.mcpserver import MCPServer

from landed_client import AsyncLanded
from landed_client.adapters.openai_agents import MCP_SETTINGS, action_tool, mcp_meta, record_tool, told_instead
from landed_client.proposals import Proposing
from landed_client.testing import FakeLanded
from tests.stubborn import COURSES, READS_LIKE_AN_ERROR, RefusesLookAlikes, effects, no_network

__all__ = ["no_network"]

agents.set_tracing_disabled(True)

ARGUMENTS = {"order": "order-1", "amount": "50.00", "repeat_of": None}


@dataclass
class Case:
    """The application's own run context."""

    name: str


def refund(order: str, amount: str, repeat_of: str | None = None) -> Proposing:
    """Refunds an order in EUR.

    Args:
        order: The order's number.
        amount: How much, as a decimal string.
        repeat_of: The id of an earlier one that this is meant to repeat.
    """
    if not order.startswith("order-"):
        raise ValueError("An order's number begins with order-.")
    return {"kind": "refund", "subject": order, "amount": amount, "currency": "EUR", "repeat_of": repeat_of}


def tool_of(landed: AsyncLanded, **more: Any) -> FunctionTool:
    return action_tool(landed, refund, run=lambda context: context.context.name, **more)


def run(tools: list[Any], *calls: Any, case: str = "case-1", servers: list[Any] | None = None) -> list[str]:
    """Lets the model make these calls, one a turn; returns what it reads after each."""
    named = [call if isinstance(call, tuple) else ("refund", call) for call in calls]
    turns = [[function_call(tool, given, call_id=f"{case}-{n}")] for n, (tool, given) in enumerate(named)]
    model = ScriptedModel([*turns, [assistant_message("done")]])
    agent = Agent[Case](name="desk", model=model, tools=tools, mcp_servers=servers or [])
    result = asyncio.run(Runner.run(agent, "a refund, please", context=Case(case)))
    model.assert_complete()
    return [_text(item.raw_item["output"]) for item in result.new_items if item.type == "tool_call_output_item"]


def _text(output: Any) -> str:
    return output if isinstance(output, str) else str(output)


def test_the_model_sees_the_functions_own_parameters(fake_landed: FakeLanded) -> None:
    tool = tool_of(fake_landed.async_client())
    assert (tool.name, tool.description) == ("refund", "Refunds an order in EUR.")
    assert list(tool.params_json_schema["properties"]) == ["order", "amount", "repeat_of"]
    assert tool.params_json_schema["properties"]["order"]["description"] == "The order's number."


def test_it_proposes_waits_and_tells_the_model(fake_landed: FakeLanded) -> None:
    (read,) = run([tool_of(fake_landed.async_client())], ARGUMENTS)
    intent = fake_landed.intents()[0]
    assert read.startswith("It is done and confirmed.")
    assert intent["id"] in read
    assert (intent["context"]["run"], intent["status"]) == ("case-1", "confirmed")


def test_an_unknown_outcome_is_told_without_a_word_that_makes_models_repeat(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown")
    (read,) = run([tool_of(fake_landed.async_client(), wait=2)], ARGUMENTS)
    for part in (
        "may have happened",
        "Don't repeat it",
        "repeat will be refused",
        "asking for again from",
        "customer",
    ):
        assert part in read
    assert not READS_LIKE_AN_ERROR.search(read)


def test_what_a_person_has_to_approve_ends_the_turn(fake_landed: FakeLanded) -> None:
    (read,) = run([tool_of(fake_landed.async_client(), wait=2)], ARGUMENTS | {"amount": "10000.01"})
    assert "a person has to approve it first" in read
    assert "end your turn" in read
    assert not READS_LIKE_AN_ERROR.search(read)


def test_a_second_identical_call_stands_for_the_first(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown", "confirmed", every=4)
    variants = (ARGUMENTS, ARGUMENTS, ARGUMENTS | {"amount": "50"}, ARGUMENTS)
    reads = run([tool_of(fake_landed.async_client(), wait=2)], *variants)
    intent = fake_landed.intents()[0]
    assert all(intent["id"] in read for read in reads)
    assert reads[-1].startswith("It is done and confirmed.")
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_two_identical_calls_in_one_turn_stand_for_one_another(fake_landed: FakeLanded) -> None:
    landed = fake_landed.async_client()
    model = ScriptedModel(
        [[function_call("refund", ARGUMENTS, call_id=f"c-{n}") for n in range(3)], [assistant_message("done")]]
    )
    agent = Agent[Case](name="desk", model=model, tools=[tool_of(landed)])
    asyncio.run(Runner.run(agent, "a refund, please", context=Case("case-1")))
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_another_run_is_refused_while_the_first_is_open_and_reads_how_it_stands(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown")
    tools = [tool_of(fake_landed.async_client(), wait=2)]
    run(tools, ARGUMENTS)
    (read,) = run(tools, ARGUMENTS, case="case-2")
    assert read.startswith("Nothing was recorded and nothing was sent by this call: when it was made, an earlier")
    assert fake_landed.intents()[0]["id"] in read
    assert not READS_LIKE_AN_ERROR.search(read)
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_another_run_reads_that_it_was_done_already() -> None:
    fake = RefusesLookAlikes()
    tools = [tool_of(fake.async_client())]
    run(tools, ARGUMENTS)
    (read,) = run(tools, ARGUMENTS, case="case-2")
    assert "the same action was done before" in read
    assert fake.intents()[0]["id"] in read
    assert (len(fake.intents()), fake.sent("order-1")) == (1, 1)


def test_other_subjects_are_other_intents_and_a_meant_second_one_names_the_first(fake_landed: FakeLanded) -> None:
    tools = [tool_of(fake_landed.async_client())]
    run(tools, ARGUMENTS, ARGUMENTS | {"order": "order-2"})
    first = fake_landed.intents("order-1")[0]["id"]
    run(tools, ARGUMENTS | {"repeat_of": first}, ARGUMENTS | {"repeat_of": first})
    assert (fake_landed.sent("order-1"), fake_landed.sent("order-2")) == (2, 1)


def test_the_record_is_read_by_its_own_tool(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown", "confirmed", every=20)
    landed = fake_landed.async_client()
    tools = [tool_of(landed, wait=1), record_tool(landed, wait=60)]
    run(tools, ARGUMENTS)
    intent = fake_landed.intents()[0]["id"]
    reads = run(tools, ("read_action", {"intent_id": intent}), ("read_action", {"intent_id": "../kinds"}))
    assert reads[0].startswith("It is done and confirmed.")
    assert not READS_LIKE_AN_ERROR.search(reads[1])


def test_arguments_that_can_not_be_taken_are_told_as_nothing_recorded(fake_landed: FakeLanded) -> None:
    tools = [tool_of(fake_landed.async_client())]
    reads = run(tools, ARGUMENTS | {"order": "4812"}, ARGUMENTS | {"amount": "50.001"}, '{"order": ', {"order": 4})
    assert "An order's number begins with order-." in reads[0]
    assert "amount: " in reads[1]
    assert all(read.startswith("Nothing was recorded and nothing was sent.") for read in reads)
    assert fake_landed.intents() == []


def test_landed_out_of_reach_is_told_as_may_have_happened_and_a_second_call_is_the_same(
    fake_landed: FakeLanded,
) -> None:
    fake_landed.lose_answers(400)
    tools = [tool_of(fake_landed.async_client(timeout=1))]
    (read,) = run(tools, ARGUMENTS)
    assert "it may have happened" in read
    assert not READS_LIKE_AN_ERROR.search(read)
    fake_landed._lost.clear()
    fake_landed.pass_time(60)
    (read,) = run(tools, ARGUMENTS)
    assert read.startswith("It is done and confirmed.")
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_the_sdks_own_time_out_and_a_bug_are_told_as_may_have_happened(
    fake_landed: FakeLanded, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hang(*_: Any) -> Any:
        await asyncio.sleep(5)

    landed = fake_landed.async_client()
    monkeypatch.setattr(landed, "_carry_out", hang)
    (slow,) = run([tool_of(landed, timeout=0.05)], ARGUMENTS)
    monkeypatch.setattr(landed, "_carry_out", None)
    (broken,) = run([tool_of(landed)], ARGUMENTS)
    assert slow == broken
    assert "may have happened" in slow
    assert not READS_LIKE_AN_ERROR.search(slow)


@pytest.mark.parametrize("course", COURSES, ids="-".join)
def test_an_agent_that_calls_again_whatever_it_reads_has_one_effect_at_most(course: tuple[str, ...]) -> None:
    fake = FakeLanded()
    fake.script("order-1", *course, every=7)
    run([tool_of(fake.async_client(), wait=3)], *[ARGUMENTS] * 6)
    assert (len(fake.intents()), fake.sent("order-1")) == (1, 1)
    assert effects(fake, "order-1") <= 1


# --- tools of an MCP server


class Lost(MCPServerStdio):
    """An MCP server on this machine whose answers don't come in time."""

    def __init__(self, calls: list[str], **settings: Any) -> None:
        super().__init__({"command": "none"}, **settings)
        self._there = MCPServer("landed")

        @self._there.tool()
        async def propose_action(subject: str) -> str:
            calls.append(subject)
            await asyncio.sleep(2)
            return "never read"

    def create_streams(self) -> Any:
        return InMemoryTransport(self._there)


class Noted(Lost):
    """Keeps what is told beside the arguments."""

    metas: list[Any]

    async def call_tool(self, tool_name: str, arguments: Any, meta: Any = None) -> Any:
        self.metas.append(meta)
        return await super().call_tool(tool_name, arguments, meta)


def test_an_mcp_server_is_told_the_run_and_the_same_step_for_the_same_wish() -> None:
    async def call() -> list[Any]:
        settings = MCP_SETTINGS | {"client_session_timeout_seconds": 0.1, "failure_error_function": told_instead}
        async with Noted([], **settings, tool_meta_resolver=mcp_meta(lambda context: context.context.name)) as server:
            server.metas = []
            wishes = [{"kind": "refund", "subject": "order-1", "amount": amount} for amount in ("50", "50.00", "51")]
            turns = [[function_call("propose_action", wish, call_id=f"c{n}")] for n, wish in enumerate(wishes)]
            model = ScriptedModel([*turns, [assistant_message("ok")]])
            agent = Agent[Case](name="desk", model=model, mcp_servers=[server])
            await Runner.run(agent, "a refund, please", context=Case("case-1"))
            return server.metas

    first, second, other = asyncio.run(call())
    assert first == second != other
    assert (first["landed/run"], bool(first["landed/step"])) == ("case-1", True)


@pytest.mark.parametrize(
    ("settings", "calls", "reads"),
    [
        (MCP_SETTINGS | {"failure_error_function": told_instead}, 1, lambda text: "may have happened" in text),
        # What the SDK does otherwise, so that it shows when these settings are no longer needed.
        ({"max_retry_attempts": 1, "retry_backoff_seconds_base": 0.0}, 2, READS_LIKE_AN_ERROR.search),
    ],
    ids=["ours", "the SDK's"],
)
def test_a_lost_answer_of_an_mcp_server(settings: Any, calls: int, reads: Callable[[str], Any]) -> None:
    made: list[str] = []

    async def lose() -> str:
        async with Lost(made, **settings | {"client_session_timeout_seconds": 0.15}) as server:
            turns = [
                [function_call("propose_action", {"subject": "order-1"}, call_id="c")],
                [assistant_message("ok")],
            ]
            agent = Agent(name="desk", model=ScriptedModel(turns), mcp_servers=[server])
            result = await Runner.run(agent, "a refund, please")
            return next(
                _text(one.raw_item["output"]) for one in result.new_items if one.type == "tool_call_output_item"
            )

    told = asyncio.run(lose())
    assert len(made) == calls
    assert reads(told)
