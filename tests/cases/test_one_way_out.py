"""There is one way out, and nothing on it sends twice, follows or detours: the source is read, not trusted.

What the transport does on the wire is shown in tests/transport; here, that nobody puts a library beside it or
configures one under it to try again, to follow a redirect, or to go through somebody's proxy.
"""

import ast
from pathlib import Path

import pytest

from actions import wire
from reconciliation.models import Verdict
from tests.flow.world import World
from tests.transport.peers import Peer, answer, replies

ROOT = Path(__file__).resolve().parents[2]
# What speaks to downstreams, or could. `config` holds the demo's clients and the health check of our own web server.
PACKAGES = ("actions", "reconciliation")

# Libraries that open connections, or that try things again.
_NETWORK = {"requests", "urllib3", "http.client", "urllib.request", "socket", "ssl", "ftplib", "smtplib", "xmlrpc"}
_NETWORK |= {
    "httpx",
    "aiohttp",
    "httplib2",
    "pycurl",
    "stripe",
    "tenacity",
    "backoff",
    "retry",
    "retrying",
    "stamina",
}
# Who may import what of them, and why.
ALLOWED = {
    "actions/notifying/addresses.py": {"socket"},  # reads numbers as addresses; resolves and connects to nothing
    "actions/wire.py": {  # the one connection
        "socket",
        "ssl",
        "http.client.HTTPException",
        "urllib3.BaseHTTPResponse",
        "urllib3.connection.HTTPConnection",
    },
    "actions/transport.py": {  # what that connection hands over and raises
        "http.client.HTTPException",
        "urllib3.BaseHTTPResponse",
        "urllib3.exceptions.HTTPError",
    },
    "reconciliation/mailing.py": {"smtplib"},  # what Django's mail back end raises; e-mail reaches people only
    "actions/phases.py": {"ssl"},  # the classes of its errors
    "actions/handing.py": {"socket"},  # the host's name
}
# Names by which one of them is told to send again, to follow, or to take another way.
_SETTINGS = {
    *("Retry", "HTTPAdapter", "PoolManager", "ProxyManager", "HTTPConnectionPool", "ProxyHandler", "Session"),
    *("max_retries", "retries", "allow_redirects", "follow_redirects", "proxies", "proxy", "proxy_url", "trust_env"),
    *("set_tunnel", "getproxies", "netrc", "connection_from_url", "urlopen", "create_connection"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy", "NETRC"),
}


def _imports(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names}
    if isinstance(node, ast.ImportFrom) and not node.level:
        return {f"{node.module}.{alias.name}" for alias in node.names}
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return {str(node.args[0].value)} if function in ("import_module", "__import__", "import_string") else set()
    return set()


def _names(node: ast.AST) -> set[str]:
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Attribute):
        return {node.attr}
    if isinstance(node, ast.keyword):
        return {node.arg or ""}
    if isinstance(node, ast.alias):
        return {node.name.rsplit(".", 1)[-1]}
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


def other_ways(source: str, *, allowed: frozenset[str] | set[str] = frozenset()) -> list[str]:
    """What a source imports or names that could open, repeat or divert a request."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        for name in _imports(node) - set(allowed):
            parts = name.split(".")
            if any(".".join(parts[:length]) in _NETWORK for length in range(1, len(parts) + 1)):
                found.add(f"imports {name}")
        found |= {f"names {name}" for name in _names(node) & _SETTINGS}
    return sorted(found)


def test_only_the_transport_reaches_the_network_and_nothing_repeats_or_diverts_it() -> None:
    files = [path for name in PACKAGES for path in (ROOT / name).rglob("*.py")]
    assert len(files) > 80
    found = {}
    for path in files:
        place = path.relative_to(ROOT).as_posix()
        if ways := other_ways(path.read_text(), allowed=ALLOWED.get(place, set())):
            found[place] = ways
    assert found == {}


def test_whoever_may_import_something_still_does() -> None:
    """Otherwise the list above grows into permissions that nobody needs."""
    for place, allowed in ALLOWED.items():
        imported = set().union(*(_imports(node) for node in ast.walk(ast.parse((ROOT / place).read_text()))))
        assert allowed <= imported, place


@pytest.mark.parametrize(
    "line",
    [
        "import requests",
        "from requests.adapters import HTTPAdapter",
        "import urllib3.util.retry as r",
        "from urllib3 import PoolManager",
        "from urllib3.util import Retry",
        "from urllib import request",
        "import urllib.request",
        "from http import client",
        "import http.client",
        "import httpx",
        "importlib.import_module('requests')",
        "__import__('urllib3')",
        "from tenacity import retry",
        "session.mount('https://', HTTPAdapter(max_retries=3))",
        "session.trust_env = True",
        "pool.urlopen('POST', url)",
        "connection.request('POST', url, retries=Retry(3))",
        "send(call, allow_redirects=True)",
        "Connection(host, port, proxy=url)",
        "connection.set_tunnel(host)",
        "os.environ['HTTPS_PROXY']",
        "os.environ.get('http_proxy')",
    ],
)
def test_each_other_way_is_seen(line: str) -> None:
    assert other_ways(line), line


@pytest.mark.parametrize(
    "line",
    [
        "from urllib.parse import urlsplit",
        "intent.next_attempt_at = policy.retry_delay_s(2)",
        "rules.not_sent_retries",
        "from django.shortcuts import redirect",
        "raise NotSendable('no proxy')",
    ],
)
def test_what_is_none_is_not_taken_for_one(line: str) -> None:
    assert other_ways(line) == []


def test_the_connection_itself_repeats_and_diverts_nothing() -> None:
    connection = wire.Connection("127.0.0.1", 9, None)
    assert not connection.auto_open, "http.client would reconnect and send again"
    assert (connection.proxy, connection.proxy_config) == (None, None)


def test_neither_sending_nor_looking_takes_the_environments_way(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sandbox.order_fault("order-1", "lose_response")
    with Peer(replies(answer(b'{"id":"re_1"}'))) as proxy:
        for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        intent = world.propose("order-1")
        world.send()
        assert world.check(intent).verdict == Verdict.MATCH
    assert (proxy.connections, world.posts(intent)) == (0, 1)
