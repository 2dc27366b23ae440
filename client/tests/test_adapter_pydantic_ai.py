"""Deferred tool calls of a real pydantic-ai agent, with a scripted model and the fake."""

import asyncio
import json
from decimal import Decimal
from typing import Any

import pytest
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, models
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel

from landed_client import AsyncLanded
from landed_client.adapters.pydantic_ai import Resolved, action_toolset, resolve
from landed_client.proposals import Proposing
from landed_client.testing import FakeLanded
from tests.stubborn import COURSES, READS_LIKE_AN_ERROR, RefusesLookAlikes, effects, no_network

__all__ = ["no_network"]

models.ALLOW_MODEL_REQUESTS = False

ARGUMENTS: dict[str, Any] = {"order": "order-1", "amount": "50.00"}


def refund(order: str, amount: Decimal, repeat_of: str | None = None) -> Proposing:
    """Refunds an order in EUR.

    Args:
        order: The order's number.
        amount: How much.
        repeat_of: The id of an earlier one that this is meant to repeat.
    """
    if not order.startswith("order-"):
        raise ValueError("An order's number begins with order-.")
    return {"kind": "refund", "subject": order, "amount": amount, "currency": "EUR", "repeat_of": repeat_of}


def agent_calling(*turns: Any) -> Agent[None, Any]:
    """A model that makes these calls, one list a turn, and then repeats what it read last."""

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(one, ModelResponse) for one in messages)
        if turn >= len(turns):
            return ModelResponse([TextPart("\n".join(read(messages)[-1:]))])
        calls = turns[turn] if isinstance(turns[turn], list) else [turns[turn]]
        return ModelResponse(
            [ToolCallPart("refund", args, tool_call_id=f"c-{turn}-{n}") for n, args in enumerate(calls)]
        )

    output: Any = [str, DeferredToolRequests]
    return Agent(FunctionModel(model), toolsets=[action_toolset(refund)], output_type=output)


def read(messages: list[ModelMessage]) -> list[str]:
    return [str(part.content) for one in messages for part in one.parts if isinstance(part, ToolReturnPart)]


async def to_its_end(agent: Agent[None, Any], landed: AsyncLanded, *, run: str | None = None, wait: float = 2) -> Any:
    """As an application would: resolve what was deferred, resume, until the model says something."""
    result = await agent.run("a refund, please")
    while isinstance(result.output, DeferredToolRequests):
        resolved = await resolve(landed, result.output, [refund], run=run or result.conversation_id, wait=wait)
        history = result.all_messages()
        result = await agent.run(message_history=history, deferred_tool_results=resolved.results)
    return result


def run(fake: FakeLanded, *turns: Any, name: str | None = None, wait: float = 2) -> list[str]:
    """What the model reads after each call."""
    result = asyncio.run(to_its_end(agent_calling(*turns), fake.async_client(), run=name, wait=wait))
    return read(result.all_messages())


def test_the_model_sees_the_functions_own_parameters() -> None:
    (tool,) = action_toolset(refund).tool_defs
    assert (tool.name, tool.description) == ("refund", "Refunds an order in EUR.")
    assert list(tool.parameters_json_schema["properties"]) == ["order", "amount", "repeat_of"]


def test_the_run_ends_and_the_outcome_is_the_calls_result(fake_landed: FakeLanded) -> None:
    result = asyncio.run(to_its_end(agent_calling(ARGUMENTS), fake_landed.async_client()))
    intent = fake_landed.intents()[0]
    assert result.output.startswith("It is done and confirmed.")
    assert (intent["context"]["run"], intent["status"]) == (result.conversation_id, "confirmed")
    (part,) = [one for message in result.all_messages() for one in message.parts if isinstance(one, ToolReturnPart)]
    assert (part.metadata["intent_id"], part.metadata["outcome"]) == (intent["id"], "confirmed")


def test_an_unknown_outcome_is_told_without_a_word_that_makes_models_repeat(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown")
    (told,) = run(fake_landed, ARGUMENTS)
    for part in (
        "may have happened",
        "Don't repeat it",
        "repeat will be refused",
        "asking for again from",
        "customer",
    ):
        assert part in told
    assert not READS_LIKE_AN_ERROR.search(told)


def test_who_can_wait_comes_back_later_even_in_another_process(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown", "confirmed", every=60)
    landed, agent = fake_landed.async_client(), agent_calling(ARGUMENTS)

    async def begin() -> tuple[bytes, str, Resolved]:
        result = await agent.run("a refund, please")
        resolved = await resolve(landed, result.output, [refund], run=result.conversation_id, wait=1)
        return result.all_messages_json(), result.conversation_id, resolved

    async def come_back(stored: bytes, conversation: str) -> str:
        messages = ModelMessagesTypeAdapter.validate_json(stored)
        calls = [part for one in messages for part in one.parts if isinstance(part, ToolCallPart)]
        requests = DeferredToolRequests(calls=calls)
        resolved = await resolve(landed, requests, [refund], run=conversation, wait=0)
        assert resolved.open == ()
        return str((await agent.run(message_history=messages, deferred_tool_results=resolved.results)).output)

    stored, conversation, resolved = asyncio.run(begin())
    assert resolved.open == ("c-0-0",)
    fake_landed.pass_time(120)
    assert asyncio.run(come_back(stored, conversation)).startswith("It is done and confirmed.")
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_what_settled_as_not_done_meanwhile_is_told_and_not_proposed_again(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown", "failed", every=60)
    landed, agent = fake_landed.async_client(), agent_calling(ARGUMENTS)

    async def twice() -> tuple[Resolved, Resolved]:
        result = await agent.run("a refund, please")
        first = await resolve(landed, result.output, [refund], run="r", wait=1)
        fake_landed.pass_time(120)
        return first, await resolve(landed, result.output, [refund], run="r", wait=1)

    first, second = asyncio.run(twice())
    told = second.told["c-0-0"]
    assert told.intent is not None
    assert (first.open, second.open, told.intent.outcome) == (("c-0-0",), (), "failed")
    assert "name this one in repeat_of" in told.text
    assert len(fake_landed.intents()) == 1


def test_a_person_has_to_approve_and_the_call_stays_open(fake_landed: FakeLanded) -> None:
    agent = agent_calling(ARGUMENTS | {"amount": "10000.01"})

    async def hold() -> Resolved:
        result = await agent.run("a refund, please")
        return await resolve(fake_landed.async_client(), result.output, [refund], run="r", wait=15)

    resolved = asyncio.run(hold())
    assert resolved.open == ("c-0-0",)
    assert "a person has to approve it first" in resolved.told["c-0-0"].text
    assert fake_landed.intents()[0]["status"] == "held"


def test_a_second_identical_call_stands_for_the_first(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown", "confirmed", every=4)
    variants = (ARGUMENTS, ARGUMENTS, json.dumps({"order": "order-1 ", "amount": 50}), [ARGUMENTS, ARGUMENTS])
    reads = run(fake_landed, *variants)
    intent = fake_landed.intents()[0]
    assert len(reads) == 5
    assert all(intent["id"] in told for told in reads)
    assert reads[-1].startswith("It is done and confirmed.")
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_another_run_is_refused_while_the_first_is_open_and_reads_how_it_stands(fake_landed: FakeLanded) -> None:
    fake_landed.script("order-1", "unknown")
    run(fake_landed, ARGUMENTS)
    (told,) = run(fake_landed, ARGUMENTS)
    assert told.startswith("Nothing was recorded and nothing was sent by this call: when it was made, an earlier")
    assert fake_landed.intents()[0]["id"] in told
    assert not READS_LIKE_AN_ERROR.search(told)
    assert (len(fake_landed.intents()), fake_landed.sent("order-1")) == (1, 1)


def test_another_run_reads_that_it_was_done_already() -> None:
    fake = RefusesLookAlikes()
    run(fake, ARGUMENTS)
    (told,) = run(fake, ARGUMENTS)
    assert "the same action was done before" in told
    assert fake.intents()[0]["id"] in told
    assert (len(fake.intents()), fake.sent("order-1")) == (1, 1)


def test_two_subjects_under_one_constant_call_id_are_two_intents(fake_landed: FakeLanded) -> None:
    async def both() -> None:
        for order in ("order-1", "order-2"):
            calls = [ToolCallPart("refund", ARGUMENTS | {"order": order}, tool_call_id="call_0")]
            await resolve(fake_landed.async_client(), DeferredToolRequests(calls=calls), [refund], run="r")

    asyncio.run(both())
    assert [one["subject"] for one in fake_landed.intents()] == ["order-1", "order-2"]


def test_a_meant_second_one_names_the_first(fake_landed: FakeLanded) -> None:
    run(fake_landed, ARGUMENTS, name="r")
    again = ARGUMENTS | {"repeat_of": fake_landed.intents()[0]["id"]}
    run(fake_landed, again, again, name="r")
    assert fake_landed.sent("order-1") == 2


def test_arguments_that_can_not_be_taken_are_told_as_nothing_recorded(fake_landed: FakeLanded) -> None:
    wrong = (ARGUMENTS | {"order": "4812"}, ARGUMENTS | {"amount": "50.001"}, {"order": "order-1"}, "[1]")
    reads = run(fake_landed, *wrong)
    assert "An order's number begins with order-." in reads[0]
    assert len(reads) == len(wrong)
    assert all(told.startswith("Nothing was recorded and nothing was sent.") for told in reads)
    assert fake_landed.intents() == []


def test_landed_out_of_reach_is_told_as_may_have_happened_and_stays_open(fake_landed: FakeLanded) -> None:
    calls = DeferredToolRequests(calls=[ToolCallPart("refund", ARGUMENTS, tool_call_id="c")])
    landed = fake_landed.async_client(timeout=1)
    fake_landed.lose_answers(400)
    lost = asyncio.run(resolve(landed, calls, [refund], run="r"))
    assert lost.open == ("c",)
    assert "it may have happened" in lost.told["c"].text
    assert not READS_LIKE_AN_ERROR.search(lost.told["c"].text)
    fake_landed._lost.clear()
    found = asyncio.run(resolve(fake_landed.async_client(), calls, [refund], run="r"))
    assert (found.open, len(fake_landed.intents())) == ((), 1)


def test_calls_of_other_tools_are_left_to_others(fake_landed: FakeLanded) -> None:
    calls = DeferredToolRequests(calls=[ToolCallPart("send_mail", {}, tool_call_id="m")])
    resolved = asyncio.run(resolve(fake_landed.async_client(), calls, [refund], run="r"))
    assert resolved == Resolved(DeferredToolResults(), {})


@pytest.mark.parametrize("course", COURSES, ids="-".join)
def test_an_agent_that_calls_again_whatever_it_reads_has_one_effect_at_most(course: tuple[str, ...]) -> None:
    fake = FakeLanded()
    fake.script("order-1", *course, every=7)
    assert len(run(fake, *[ARGUMENTS] * 6, wait=3)) == 6
    assert (len(fake.intents()), fake.sent("order-1")) == (1, 1)
    assert effects(fake, "order-1") <= 1
