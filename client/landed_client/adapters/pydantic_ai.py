"""pydantic-ai: the tool call is deferred, the run ends, and Landed's answer is the call's result.

    toolset = action_toolset(refund)
    agent = Agent(model, toolsets=[toolset], output_type=[str, DeferredToolRequests])
    result = await agent.run("…")
    if isinstance(result.output, DeferredToolRequests):
        resolved = await resolve(landed, result.output, [refund], run=result.conversation_id)
        result = await agent.run(message_history=result.all_messages(), deferred_tool_results=resolved.results)

The results are plain returns: never ModelRetry ("Fix the errors and try again."), never a tool failure.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import validate_call
from pydantic_ai import DeferredToolRequests, DeferredToolResults, ExternalToolset, Tool, ToolReturn
from pydantic_ai.messages import ToolCallPart

from landed_client import AsyncLanded, telling
from landed_client.adapters import once
from landed_client.adapters.parameters import with_parameters_of
from landed_client.proposals import Proposing

Proposal = Callable[..., Proposing]


@dataclass(frozen=True)
class Resolved:
    """`results`: for `deferred_tool_results`, complete as far as Landed's tools go and true as of now.

    `open`: the ids of the tool calls of which something may still come. Whoever can wait stores the messages and
    the requests, and resolves them again when there is news (webhook `intent.settled`, or `ask_again_at`): the same
    requests mean the same intents. Whoever can't resumes at once; then the model is told how it stands.
    `told`: all of it, by tool call.
    """

    results: DeferredToolResults
    told: dict[str, once.Told]

    @property
    def open(self) -> tuple[str, ...]:
        return tuple(call_id for call_id, told in self.told.items() if told.open)


def action_toolset(*proposals: Proposal, id: str | None = None) -> ExternalToolset[Any]:
    """Deferred tools with the names, docstrings and parameters of functions that turn arguments into a proposal."""
    return ExternalToolset([Tool(_as_seen(proposal)).tool_def for proposal in proposals], id=id)


def _as_seen(proposal: Proposal) -> Callable[..., Any]:
    """Only read for its schema, never called."""
    return with_parameters_of(proposal, lambda *_, **__: "")


async def resolve(
    landed: AsyncLanded,
    requests: DeferredToolRequests,
    proposals: Iterable[Proposal],
    *,
    run: str,
    wait: float = 20.0,
) -> Resolved:
    """Proposes the deferred calls of these tools, one after the other; other calls are left for others to answer.

    `run`: the name of the run, the same when it is resumed: the conversation's id. Not pydantic-ai's `run_id`, which
    is another one after each resumption. In one run the same wish is one intent, whatever the tool calls' ids; a
    `repeat_of` parameter lets a model mean another one. `wait`: seconds per call until it is told how it stands.
    Repeatable. Never raises for what became of an action; what `proposal` raises as ValueError is told as a refusal.
    """
    by_name = {proposal.__name__: proposal for proposal in proposals}
    told: dict[str, once.Told] = {}
    for call in requests.calls:
        if (proposal := by_name.get(call.tool_name)) is not None:
            told[call.tool_call_id] = await _told(landed, call, proposal, run, wait)
    return Resolved(DeferredToolResults(calls={one: _returned(about) for one, about in told.items()}), told)


async def _told(landed: AsyncLanded, call: ToolCallPart, proposal: Proposal, run: str, wait: float) -> once.Told:
    try:
        # External tools' arguments come as the model wrote them; nobody has looked at their types yet.
        fields = once.in_run(validate_call(proposal)(**call.args_as_dict(raise_if_invalid=True)), run)
    except (TypeError, ValueError, AssertionError) as error:
        text = f"{telling.NOTHING_RECORDED} These arguments can't be taken: {error}"
        return once.Told(text, None, None, "")
    return await landed._carry_out(once.propose(fields, landed._setting, wait=wait))


def _returned(told: once.Told) -> ToolReturn[str]:
    """The text is the model's; the metadata stays with the application."""
    intent = told.intent
    about = {"intent_id": intent and intent.id, "outcome": intent and intent.outcome, "refused": told.refused}
    return ToolReturn(told.text, metadata=about | {"request_key": told.request_key})
