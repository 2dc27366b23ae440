"""A refund with the OpenAI Agents SDK and a scripted model that calls three times: there is one refund.

    make demo                                     # prints base_url, agent_token and sandbox_url
    LANDED_URL=http://127.0.0.1:… LANDED_TOKEN=… python client/examples/openai_agents_refund.py

With LANDED_SANDBOX=<sandbox_url> the payments service books the refund and its answer is lost. With a model of your
own, drop `ScriptedModel` and the line that switches tracing off (it sends to OpenAI).
"""

import asyncio
import os
import sys
from dataclasses import dataclass
from uuid import uuid4

import httpx
from agents import Agent, Runner, set_tracing_disabled
from agents.testing import ScriptedModel, assistant_message, function_call

from landed_client import AsyncLanded
from landed_client.adapters.openai_agents import action_tool, record_tool
from landed_client.proposals import Proposing


@dataclass
class Case:
    name: str


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


async def main() -> int:
    set_tracing_disabled(True)
    order = f"order-{uuid4().hex[:8]}"
    if sandbox := os.environ.get("LANDED_SANDBOX"):
        httpx.post(f"{sandbox}/_control/faults", json={"order": order, "fault": "lose_response"}).raise_for_status()
    async with AsyncLanded(os.environ["LANDED_URL"], os.environ["LANDED_TOKEN"]) as landed:
        tools = [action_tool(landed, refund, run=lambda context: context.context.name, wait=1), record_tool(landed)]
        asked = {"order": order, "amount": "50.00", "reason": "came late", "repeat_of": None}
        calls = [[function_call("refund", asked, call_id=f"call-{n}")] for n in range(3)]
        agent = Agent[Case](name="desk", model=ScriptedModel([*calls, [assistant_message("Done.")]]), tools=tools)
        result = await Runner.run(agent, "My parcel came late.", context=Case(f"case-{order}"))
        for item in result.new_items:
            if item.type == "tool_call_output_item":
                print(f"the model reads: {item.output}")
        recorded = (await landed.actions.list(subject=order)).data
        settled = await landed.actions.wait(recorded[0].id, timeout=30)
        print(f"{len(recorded)} intent, {settled.outcome}")
        return 0 if len(recorded) == 1 and settled.outcome == "confirmed" else 1


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
