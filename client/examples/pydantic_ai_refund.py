"""A refund in pydantic-ai as a deferred tool call, with a scripted model that calls twice: there is one refund.

    make demo                                     # prints base_url, agent_token and sandbox_url
    LANDED_URL=http://127.0.0.1:… LANDED_TOKEN=… python client/examples/pydantic_ai_refund.py

With LANDED_SANDBOX=<sandbox_url> the payments service books the refund and its answer is lost.
"""

import asyncio
import os
import sys
from uuid import uuid4

import httpx
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from landed_client import AsyncLanded
from landed_client.adapters.pydantic_ai import action_toolset, resolve
from landed_client.proposals import Proposing

ORDER = f"order-{uuid4().hex[:8]}"


def refund(order: str, amount: str, reason: str, repeat_of: str | None = None) -> Proposing:
    """Refunds an order in EUR.

    Args:
        order: The order's number.
        amount: How much, as a decimal string.
        reason: Why, in a few words.
        repeat_of: Only for a refund that is meant besides an earlier one: the id of that one's record.
    """
    return {
        "kind": "refund",
        "subject": order,
        "amount": amount,
        "currency": "EUR",
        "note": reason,
        "repeat_of": repeat_of,
    }


def scripted(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    turn = sum(isinstance(one, ModelResponse) for one in messages)
    if turn == 2:
        return ModelResponse([TextPart("Done.")])
    asked = {"order": ORDER, "amount": "50.00", "reason": "came late" if turn == 0 else "no answer came, once more"}
    return ModelResponse([ToolCallPart("refund", asked)])


async def main() -> int:
    if sandbox := os.environ.get("LANDED_SANDBOX"):
        httpx.post(f"{sandbox}/_control/faults", json={"order": ORDER, "fault": "lose_response"}).raise_for_status()
    agent = Agent(FunctionModel(scripted), toolsets=[action_toolset(refund)], output_type=[str, DeferredToolRequests])
    async with AsyncLanded(os.environ["LANDED_URL"], os.environ["LANDED_TOKEN"]) as landed:
        result = await agent.run("My parcel came late.")
        while isinstance(result.output, DeferredToolRequests):
            resolved = await resolve(landed, result.output, [refund], run=result.conversation_id, wait=1)
            history = result.all_messages()
            result = await agent.run(message_history=history, deferred_tool_results=resolved.results)
        for part in (part for message in result.all_messages() for part in message.parts):
            if isinstance(part, ToolReturnPart):
                print(f"the model reads: {part.content}")
        recorded = (await landed.actions.list(subject=ORDER)).data
        settled = await landed.actions.wait(recorded[0].id, timeout=30)
        print(f"{len(recorded)} intent, {settled.outcome}")
        return 0 if len(recorded) == 1 and settled.outcome == "confirmed" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
