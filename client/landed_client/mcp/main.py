"""`landed-mcp`: over stdio, or with --http over streamable HTTP. The token comes from the environment alone."""

import argparse
import hmac
import ipaddress
import logging
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import anyio
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from landed_client.aclient import AsyncLanded
from landed_client.mcp.calls import Desk
from landed_client.mcp.keys import Names
from landed_client.mcp.server import build
from landed_client.transport import api_url, settings_of_http

_USAGE = """environment:
  LANDED_URL            where Landed is, without /api/v1
  LANDED_TOKEN          the agent's token
  LANDED_MCP_RUN_META   the key of a request's _meta that names the run (default landed/run)
  LANDED_MCP_STEP_META  the one that names the step (default landed/step)
  LANDED_MCP_RUN        the run, for hosts that start a process per run (stdio only)
  LANDED_MCP_KEY        with --http: what hosts send as Authorization: Bearer …; needed beyond loopback
"""


class BadSetting(ValueError):
    """Something in the environment or the arguments can't be used; the message says what, without showing it."""


@dataclass(frozen=True)
class Settings:
    url: str
    token: str
    names: Names
    key: str | None

    def __repr__(self) -> str:
        return f"Settings({self.url!r})"

    def connect(self) -> AsyncLanded:
        return AsyncLanded(self.url, self.token)


def read(environment: Mapping[str, str], *, http: bool) -> Settings:
    """Raises BadSetting."""
    url, token = environment.get("LANDED_URL", ""), environment.get("LANDED_TOKEN", "")
    for name, value in (("LANDED_URL", url), ("LANDED_TOKEN", token)):
        if not value:
            raise BadSetting(f"{name} is not set.")
    try:
        api_url(url)
        settings_of_http(token)
    except ValueError as error:
        raise BadSetting(str(error)) from None
    names = Names(
        run_meta=environment.get("LANDED_MCP_RUN_META") or Names.run_meta,
        step_meta=environment.get("LANDED_MCP_STEP_META") or Names.step_meta,
        # One HTTP server serves many runs.
        run=None if http else environment.get("LANDED_MCP_RUN") or None,
    )
    return Settings(url, token, names, environment.get("LANDED_MCP_KEY") or None)


def app_of(server: Server[Desk], *, host: str, key: str | None) -> ASGIApp:
    """The ASGI application, at /mcp. Raises BadSetting for an address that others reach and no key."""
    if key is None and not _is_loopback(host):
        raise BadSetting("Beyond loopback, LANDED_MCP_KEY must be set: whoever reaches this acts as the agent.")
    app = server.streamable_http_app(host=host)
    return app if key is None else _Locked(app, key)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Locked:
    """Lets in who sends the key."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._wanted = f"Bearer {key}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._is_open_to(scope):
            headers = {"WWW-Authenticate": "Bearer"}
            await PlainTextResponse("Unauthorized", 401, headers=headers)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _is_open_to(self, scope: Scope) -> bool:
        sent = [value for name, value in scope["headers"] if name == b"authorization"]
        return len(sent) == 1 and hmac.compare_digest(sent[0], self._wanted)


async def _serve_stdio(server: Server[Desk]) -> None:
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="landed-mcp",
        description=__doc__,
        epilog=_USAGE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--http", action="store_true", help="serve streamable HTTP at /mcp instead of stdio")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8848)
    given = parser.parse_args(arguments)
    # stdout belongs to the protocol. Below WARNING, HTTP libraries write addresses with subjects in them.
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    try:
        settings = read(os.environ, http=given.http)
        server = build(settings.connect, settings.names)
        if not given.http:
            anyio.run(_serve_stdio, server)
            return 0
        app = app_of(server, host=given.host, key=settings.key)
    except BadSetting as error:
        print(f"landed-mcp: {error}", file=sys.stderr)
        return 2
    uvicorn.run(app, host=given.host, port=given.port, log_level="warning")
    return 0


if __name__ == "__main__":
    sys.exit(main())
