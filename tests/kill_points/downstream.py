"""The other side: a payments service with its books, and a receiver of events, in one process with one thread.

It takes one connection after the other. So what somebody sent before dying is carried out, or found to be broken off,
before whoever comes next is answered: nothing here depends on who is faster.
"""

from __future__ import annotations

import copy
import json
import socket
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

from actions.transport import Call
from tests.simulation.downstream import Answer, Effect, Fault, Payments

LAG_S, WINDOW_S = 1, 3_600


@dataclass
class State:
    """`faults`: what befalls requests about an order. `requests`: keys as they came; `told`: webhook-ids."""

    plain: Payments = field(default_factory=lambda: Payments("plain", dedupes=False, window_s=0, lag_s=LAG_S))
    dedupes: Payments = field(default_factory=lambda: Payments("dedupes", dedupes=True, window_s=WINDOW_S, lag_s=0))
    faults: dict[str, str] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


class Service(HTTPServer):
    """`GET|POST /plain/…` and `/dedupes/…` are two payments services, `/hooks` hears of events, `/control/…` is for
    the test: `fault`, `keep`, `restore`, `state`."""

    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.state, self.kept = State(), State()

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Somebody died in the middle of it."""

    def answer(self, method: str, path: str, headers: dict[str, str], body: bytes) -> Answer | None:
        _, place, *rest = path.split("/", 2)
        if place == "control":
            return Answer(200, json.dumps(self._control(rest[0], body)).encode())
        if place == "hooks":
            self.state.told.append(headers["webhook-id"])
            return Answer(204, b"")
        payments = self.state.dedupes if place == "dedupes" else self.state.plain
        now = datetime.now(UTC)
        if method == "GET":
            return payments.ledger(path, now)
        self.state.requests.append(headers["idempotency-key"])
        fault = Fault(self.state.faults.get(json.loads(body)["order"], "none"))
        if fault is Fault.LOST_REQUEST:
            return None
        call = Call(method, path, {"Idempotency-Key": headers["idempotency-key"]}, body)
        return payments.take(call, sent_at=now, now=now, fault=fault, lateness=0.0)

    def _control(self, what: str, body: bytes) -> Any:
        if what == "fault":
            self.state.faults |= json.loads(body)
        elif what == "clear":
            self.state = State()
        elif what == "keep":
            self.kept = copy.deepcopy(self.state)
        elif what == "restore":
            self.state = copy.deepcopy(self.kept)
        return {
            "effects": [_shown(one) for one in (*self.state.plain.effects, *self.state.dedupes.effects)],
            "requests": self.state.requests,
            "told": self.state.told,
        }


def _shown(effect: Effect) -> dict[str, Any]:
    return {
        "id": effect.id,
        "key": effect.key,
        "amount_minor": effect.amount_minor,
        "currency": effect.currency,
        "live": effect.live,
    }


class _Handler(BaseHTTPRequestHandler):
    server: Service

    def do_POST(self) -> None:
        size = int(self.headers["content-length"] or 0)
        body = self.rfile.read(size)
        if len(body) < size:
            return  # broken off: half a request is none
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = self.server.answer(self.command, self.path, headers, body)
        if answer is not None:
            lines = [f"HTTP/1.0 {answer.status} So", f"Content-Length: {len(answer.body)}", "Connection: close"]
            lines += [f"{name}: {value}" for name, value in answer.headers.items()]
            # In one piece, so that whoever reads it reads as often every time.
            self.connection.sendall("\r\n".join([*lines, "", ""]).encode() + answer.body)

    do_GET = do_POST

    def log_message(self, *_: object) -> None: ...


def control(port: int, what: str, **body: Any) -> dict[str, Any]:
    """Asks the service, from the test's side."""
    text = json.dumps(body).encode()
    with socket.create_connection(("127.0.0.1", port), timeout=10) as found:
        found.sendall(f"POST /control/{what} HTTP/1.0\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
        answer = b"".join(iter(lambda: found.recv(65_536), b""))
    result: dict[str, Any] = json.loads(answer.split(b"\r\n\r\n", 1)[1])
    return result
