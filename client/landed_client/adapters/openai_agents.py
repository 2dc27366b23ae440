"""OpenAI Agents SDK: a function tool that proposes, waits a moment and tells; nothing in it says "please try again".

    refund_tool = action_tool(landed, refund, run=lambda context: context.context.case_id)
    agent = Agent(name="desk", tools=[refund_tool, record_tool(landed)])

By default the SDK tells the model "An error occurred while running the tool. Please try again." for whatever a tool
raises, "timed out" for its own time-out, and the same for tools of MCP servers. Each of these is replaced here.
"""

import inspect
from collections.abc import Callable
from typing import Any, Final

from agents import FunctionTool, ModelBehaviorError, RunContextWrapper, function_tool
from agents.mcp import MCPToolMetaContext
from agents.tool_context import ToolContext

from landed_client import AsyncLanded, LandedError, telling
from landed_client.adapters import once
from landed_client.adapters.parameters import with_parameters_of
from landed_client.proposals import Proposing

RunOf = Callable[[Any], str]
_CONTEXT: Final = inspect.Parameter(
    "landed_run_context", inspect.Parameter.POSITIONAL_ONLY, annotation=ToolContext[Any]
)

# For MCPServerStdio and MCPServerStreamableHttp, as keyword arguments. Its own repeating is off (a repeated call is
# another proposal), and its session waits longer than `wait_for_action` does; five seconds are the SDK's default.
MCP_SETTINGS: Final[dict[str, Any]] = {"max_retry_attempts": 0, "client_session_timeout_seconds": 90.0}


def told_instead(context: RunContextWrapper[Any], error: Exception) -> str:
    """What the model reads when a call ended without an answer: for `failure_error_function`, time-outs included.

    Also for servers of MCP tools: `MCPServerStdio(params, **MCP_SETTINGS, failure_error_function=told_instead)`.
    """
    if isinstance(error, ModelBehaviorError):
        return f"{telling.NOTHING_RECORDED} The arguments can't be read; give them as the tool's schema says."
    if isinstance(error, LandedError):
        return telling.tell_error(error)
    return telling.UNANSWERED


def mcp_meta(run: RunOf) -> Callable[[MCPToolMetaContext], dict[str, Any]]:
    """For an MCP server's `tool_meta_resolver`: tells landed-mcp the run, and a step that is the same for the same
    wish, so that it derives the request key from them. `run`: see `action_tool`."""

    def meta(call: MCPToolMetaContext) -> dict[str, Any]:
        here = run(call.run_context)
        step = once.step_of(call.arguments or {})
        return {"landed/run": here} | ({"landed/step": step} if step else {})

    return meta


def action_tool(
    landed: AsyncLanded,
    proposal: Callable[..., Proposing],
    *,
    run: RunOf,
    wait: float = 20.0,
    timeout: float | None = None,
) -> FunctionTool:
    """A tool with the name, docstring and parameters of `proposal`, which turns a model's arguments into a proposal.

    `run`: names the run, the same when it is resumed and another for every other run: a case, a session. In one run
    the same wish is one intent, however often the model calls; a `repeat_of` parameter lets it mean another one.
    `wait`: seconds until the model is told how it stands. `timeout`: the SDK's own, for those who need one; longer
    than `wait`. What `proposal` raises as ValueError is told as a refusal of these arguments.
    """

    async def call(context: ToolContext[Any], /, *args: Any, **named: Any) -> str:
        here = run(context)
        try:
            fields = once.in_run(proposal(*args, **named), here)
        except (TypeError, ValueError) as error:
            return f"{telling.NOTHING_RECORDED} These arguments can't be taken: {error}"
        return (await landed._carry_out(once.propose(fields, landed._setting, wait=wait))).text

    return _tool(with_parameters_of(proposal, call, _CONTEXT), timeout)


def record_tool(landed: AsyncLanded, *, wait: float = 20.0, timeout: float | None = None) -> FunctionTool:
    """A tool `read_action(intent_id)`: how an action stands after `wait` seconds at most. Changes nothing."""

    async def read_action(intent_id: str) -> str:
        """How an action stands that was proposed before.

        Args:
            intent_id: The id of its record.
        """
        return (await landed._carry_out(once.follow(intent_id, landed._setting, wait=wait))).text

    return _tool(read_action, timeout)


def _tool(function: Callable[..., Any], timeout: float | None) -> FunctionTool:
    return function_tool(
        function, failure_error_function=told_instead, timeout=timeout, timeout_error_function=told_instead
    )
