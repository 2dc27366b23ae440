"""Both transports, with the SDK's own client: stdio as a process, streamable HTTP over loopback; a real Landed."""

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

pytest.importorskip("mcp")

import httpx2
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from landed_client.mcp.main import BadSetting, Settings, app_of, main, read
from landed_client.mcp.server import build
from landed_client.testing import FakeLanded, Faults, Server

from .test_mcp_calls import REFUND, Slow, answer, call, structured
from .test_mcp_texts import FORBIDDEN

pytestmark = pytest.mark.anyio
KEY = "a-key-of-the-hosts"
SETTINGS = {"LANDED_URL": "http://landed.invalid", "LANDED_TOKEN": "tok-3n"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@contextlib.asynccontextmanager
async def over_stdio(server: Server, mode: Any = "auto") -> AsyncIterator[Client]:
    env = {"LANDED_URL": server.base_url, "LANDED_TOKEN": server.token, "PATH": os.environ["PATH"]}
    command = StdioServerParameters(command=sys.executable, args=["-m", "landed_client.mcp.main"], env=env)
    async with Client(command, mode=mode) as client:
        yield client


@contextlib.asynccontextmanager
async def serving(app: Any) -> AsyncIterator[str]:
    """The address of an ASGI application on a free port of loopback."""
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", timeout_graceful_shutdown=1))
    running = asyncio.create_task(server.serve(sockets=[taken]))
    try:
        while not server.started:
            await anyio.sleep(0.01)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await running


@contextlib.asynccontextmanager
async def over_http(server: Server, mode: Any = "auto") -> AsyncIterator[Client]:
    """The command itself, as somebody would start it."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    env = {"LANDED_URL": server.base_url, "LANDED_TOKEN": server.token, "PATH": os.environ["PATH"]}
    command = [str(Path(sys.executable).parent / "landed-mcp"), "--http", "--port", str(port)]
    async with await anyio.open_process(command, env=env, stdout=None, stderr=None) as process:
        try:
            await _until_it_listens(port)
            async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
                yield client
        finally:
            process.terminate()


async def _until_it_listens(port: int) -> None:
    with anyio.fail_after(20):
        while True:
            with contextlib.suppress(OSError):
                async with await anyio.connect_tcp("127.0.0.1", port):
                    return
            await anyio.sleep(0.05)


@pytest.mark.parametrize(("transport", "mode"), [(over_stdio, "auto"), (over_http, "legacy")])
async def test_a_lost_response_is_unknown_then_refused_then_confirmed_and_booked_once(
    transport: Any, mode: str, landed_server: Server, landed_faults: Faults
) -> None:
    order = landed_faults.new_order("mcp")
    landed_faults.lose_response(order)
    # However long the repetitions take: nobody finds the booking before they have all been made.
    landed_faults.blind(order, times=1_000)
    refund = {"kind": "refund", "subject": order, "amount": "12.50", "currency": "EUR", "wait_s": 0}
    async with transport(landed_server, mode) as client:
        results = [await call(client, "propose_action", refund)]
        action = structured(results[0])["intent"]["id"]
        landed_faults.wait_for_post(order)
        while structured(results[-1])["intent"]["status"] in ("recorded", "submitted"):
            results.append(await call(client, "get_action", {"intent_id": action}))
        assert structured(results[-1])["intent"]["status"] == "unknown"
        assert "may have happened" in structured(results[-1])["what_to_do"]

        async def repeat(number: int) -> None:
            results.append(await call(client, "propose_action", refund | {"request_key": f"k-{number}"}))
            assert structured(results[-1])["result"] == "unsettled_duplicate"

        async with anyio.create_task_group() as group:
            for number in range(10):
                group.start_soon(repeat, number)
        for result in results:
            assert not result.is_error
            assert not FORBIDDEN.search(result.content[0].text)  # type: ignore[union-attr]
        listed = await answer(client, "list_unsettled", {"subject": order})
        assert [one["id"] for one in listed["actions"]] == [action]
        landed_faults.over(order)
        last = await answer(client, "wait_for_action", {"intent_id": action, "wait_s": 30})
        assert last["intent"]["outcome"] == "confirmed"
        # The demo's kind allows look-alikes: what keeps this from being a second refund is the key alone.
        same = await answer(client, "propose_action", refund)
        assert (same["replayed"], same["intent"]["id"]) == (True, action)
    assert len(landed_faults.booked(order)) == 1
    assert len(landed_faults.posts(order)) == 1


async def test_the_process_says_nothing_on_its_own_and_never_its_token(landed_server: Server) -> None:
    async with over_stdio(landed_server) as client:
        results = [await call(client, "propose_action", REFUND | {"kind": "nothing-of-the-sort"})]
        results.append(await call(client, "list_unsettled", {}))
    assert landed_server.token not in str(results)


# --- a host that goes away


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_a_host_that_disconnects_leaves_its_proposal_on_record(mode: Any) -> None:
    fake = FakeLanded()
    slow = Slow(fake)
    async with serving(app_of(build(slow.connect), host="127.0.0.1", key=None)) as url:

        async def propose() -> None:
            async with Client(url, mode=mode) as client:
                await call(client, "propose_action", REFUND)

        with anyio.fail_after(20):
            async with anyio.create_task_group() as group:
                group.start_soon(propose)
                await slow.arrived.wait()
                group.cancel_scope.cancel()
        # Until the server has seen that nobody is there any more.
        await anyio.sleep(0.2)
        assert fake.intents() == []
        slow.go.set()
        with anyio.fail_after(20):
            while not fake.intents():
                await anyio.sleep(0.01)
        async with Client(url, mode=mode) as client:
            again = await answer(client, "propose_action", REFUND)
        assert [one["id"] for one in fake.intents()] == [again["intent"]["id"]]


# --- who may come in, and with what


async def test_over_http_only_who_has_the_key_comes_in() -> None:
    server = build(FakeLanded().async_client)
    async with serving(app_of(server, host="127.0.0.1", key=KEY)) as url, httpx.AsyncClient() as plain:
        for sent in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": KEY}):
            assert (await plain.post(url, json={}, headers=sent)).status_code == 401
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {KEY}"}) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            assert (await answer(client, "propose_action", REFUND))["intent"]["outcome"] == "confirmed"


async def test_a_page_of_another_site_does_not_come_in() -> None:
    server = build(FakeLanded().async_client)
    headers = {"Origin": "https://evil.example", "Accept": "application/json, text/event-stream"}
    async with serving(app_of(server, host="127.0.0.1", key=None)) as url, httpx.AsyncClient() as plain:
        assert (await plain.post(url, json={}, headers=headers)).status_code == 403


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.1", "landed.example", "::"])
def test_beyond_loopback_a_key_is_needed(host: str) -> None:
    with pytest.raises(BadSetting, match="LANDED_MCP_KEY"):
        app_of(build(FakeLanded().async_client), host=host, key=None)


@pytest.mark.parametrize("missing", ["LANDED_URL", "LANDED_TOKEN"])
def test_without_an_address_or_a_token_it_does_not_start(missing: str) -> None:
    env = {name: value for name, value in SETTINGS.items() if name != missing}
    with pytest.raises(BadSetting, match=missing):
        read(env, http=False)


def test_no_setting_is_shown(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    settings = read(SETTINGS | {"LANDED_MCP_KEY": "k-77"}, http=True)
    assert "tok-3n" not in repr(settings)
    assert "k-77" not in repr(settings)
    for name, value in {"LANDED_URL": "http://x", "LANDED_TOKEN": "tok-3n with spaces"}.items():
        monkeypatch.setenv(name, value)
    assert main([]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "tok-3n" not in shown.err


def test_the_run_of_a_process_is_not_the_run_of_a_server_for_many() -> None:
    env = SETTINGS | {"LANDED_MCP_RUN": "r-1", "LANDED_MCP_STEP_META": "claudecode/toolUseId"}
    assert read(env, http=False).names.run == "r-1"
    assert read(env, http=False).names.step_meta == "claudecode/toolUseId"
    assert read(env, http=True).names.run is None
    assert isinstance(read(env, http=True), Settings)


def test_the_token_can_not_be_given_as_an_argument() -> None:
    command = [sys.executable, "-m", "landed_client.mcp.main", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "--token" not in shown
    assert "LANDED_TOKEN" in shown
