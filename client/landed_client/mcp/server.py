"""The MCP server: from a tool's name and arguments to a result. The SDK's low-level server, so that arguments are
checked by our models as they are, and every text that a model reads is ours."""

import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import Any

from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
)
from pydantic import ValidationError

from landed_client.aclient import AsyncLanded
from landed_client.mcp import answers, calls, texts, tools
from landed_client.mcp.answers import ActionList, Answer
from landed_client.mcp.arguments import Arguments, Listing, OneAction, Proposal, Waiting
from landed_client.mcp.calls import Desk
from landed_client.mcp.keys import Names

log = logging.getLogger("landed_client.mcp")

Context = ServerRequestContext[Desk]


def build(connect: Callable[[], AsyncLanded], names: Names | None = None) -> Server[Desk]:
    """`connect`: makes the connection, inside the event loop that it will belong to."""

    @asynccontextmanager
    async def lifespan(_: Server[Desk]) -> AsyncIterator[Desk]:
        async with connect() as landed:
            yield Desk(landed, names or Names())

    return Server(
        "landed",
        title="Landed",
        version=version("landed-client"),
        instructions=texts.INSTRUCTIONS,
        lifespan=lifespan,
        on_list_tools=_list_tools,
        on_call_tool=_call_tool,
    )


async def _list_tools(_: Context, __: PaginatedRequestParams | None) -> ListToolsResult:
    return ListToolsResult(tools=tools.listed())


async def _call_tool(context: Context, params: CallToolRequestParams) -> CallToolResult:
    tool = tools.TOOLS.get(params.name)
    if tool is None:
        raise MCPError(code=INVALID_PARAMS, message="There is no such tool.")
    try:
        given = tool.takes.model_validate(params.arguments or {})
    except ValidationError as error:
        return _result(_invalid(tool.gives, answers.problems_of(error)))
    return _result(await _answer(context, params.name, given))


async def _answer(context: Context, name: str, given: Arguments) -> Answer | ActionList:
    try:
        return await _call(context, given, name)
    except Exception:
        # Our own fault. What was sent may have arrived, and that is what is said.
        log.exception("%s broke down", name)
        return _broken(name)


async def _call(context: Context, given: Arguments, name: str) -> Answer | ActionList:
    desk = context.lifespan_context
    match given:
        case Proposal():
            return await calls.propose(desk, given, dict(context.meta or {}))
        case Waiting():
            return await calls.wait(desk, given, _teller(context))
        case Listing():
            return await calls.list_unsettled(desk, given)
        case OneAction() if name == "cancel_action":
            return await calls.cancel(desk, given)
        case OneAction():
            return await calls.get(desk, given)
        case _:
            raise TypeError(f"no call takes {type(given).__name__}")


def _teller(context: Context) -> Callable[[float, float], Any]:
    async def tell(gone: float, total: float) -> None:
        await context.session.report_progress(gone, total, texts.STILL_WAITING)

    return tell


def _invalid(gives: type[Answer | ActionList], problems: list[answers.Problem]) -> Answer | ActionList:
    if gives is ActionList:
        return ActionList(result="invalid", what_to_do=texts.NOT_LISTED, problems=problems)
    return answers.invalid(problems)


def _broken(name: str) -> Answer | ActionList:
    if name == "list_unsettled":
        return ActionList(result="unavailable", what_to_do=texts.UNREADABLE)
    text = {
        "propose_action": texts.unavailable(may_be_recorded=True),
        "cancel_action": texts.MAY_BE_WITHDRAWN,
    }.get(name, texts.UNREADABLE)
    return answers.unavailable(text, recorded="maybe")


def _result(answer: Answer | ActionList) -> CallToolResult:
    """The text first; then the structured part once more, for hosts that show a model nothing but texts."""
    structured = answer.model_dump(mode="json")
    return CallToolResult(
        content=[
            TextContent(text=answer.what_to_do),
            TextContent(text=json.dumps(structured, ensure_ascii=True, separators=(",", ":"))),
        ],
        structured_content=structured,
        is_error=answer.result in answers.ERRORS,
    )
