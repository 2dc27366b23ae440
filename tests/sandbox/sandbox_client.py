"""What the tests use to start the sandbox and to speak to it: http.client and raw sockets, nothing clever."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Sandbox:
    process: subprocess.Popen[str]
    url: str

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def call(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
            connection.request(method, path, data, headers or {})
            response = connection.getresponse()
            fields = {name.lower(): value for name, value in response.getheaders()}
            return Reply(response.status, fields, response.read())
        finally:
            connection.close()

    def refund(self, order: str, key: str | None = None, amount_minor: object = 5000, **fields: object) -> Reply:
        body = {"order": order, "amount_minor": amount_minor, "currency": "EUR", **fields}
        return self.call("POST", "/v1/refunds", body, {"Idempotency-Key": key or f"key-{order}"})

    def order_fault(self, order: str, fault: str, **fields: object) -> None:
        reply = self.call("POST", "/_control/faults", {"order": order, "fault": fault, **fields})
        assert reply.status == 201, reply.body

    def configure(self, **fields: object) -> None:
        reply = self.call("POST", "/_control/config", fields)
        assert reply.status == 200, reply.body

    def ledger(self, **query: object) -> Reply:
        return self.call("GET", f"/v1/ledger?{urlencode(query)}")

    def booked(self, order: str) -> list[dict[str, Any]]:
        """The true books of an order."""
        data: list[dict[str, Any]] = self.call("GET", f"/_control/ledger?order={order}").json["data"]
        return data

    def requests(self, order: str) -> list[dict[str, Any]]:
        data: list[dict[str, Any]] = self.call("GET", f"/_control/requests?order={order}").json["data"]
        return data

    @contextlib.contextmanager
    def send_raw_refund(self, order: str, key: str | None = None) -> Iterator[socket.socket]:
        """Send a valid refund request on a bare socket and hand over the socket to read the answer from."""
        body = json.dumps({"order": order, "amount_minor": 5000, "currency": "EUR"}).encode()
        head = (
            f"POST /v1/refunds HTTP/1.1\r\nHost: 127.0.0.1\r\nIdempotency-Key: {key or f'key-{order}'}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n"
        )
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as sock:
            sock.sendall(head.encode() + body)
            yield sock

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(timeout=5)


def start_sandbox(*arguments: str) -> Sandbox:
    process = subprocess.Popen(
        [sys.executable, "-m", "sandbox", *arguments], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    ready = json.loads(line)
    assert ready["pid"] == process.pid
    return Sandbox(process, ready["url"])


def read_until_close(sock: socket.socket) -> bytes:
    data = b""
    while chunk := sock.recv(65_536):
        data += chunk
    return data


def read_for(sock: socket.socket, seconds: float) -> bytes:
    """What comes within `seconds` of silence; fails the test if the peer closes."""
    sock.settimeout(seconds)
    data = b""
    with contextlib.suppress(TimeoutError):
        while chunk := sock.recv(65_536):
            data += chunk
        raise AssertionError(f"closed after {data!r}")
    return data
