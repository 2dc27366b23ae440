"""A proxy in front of a Stripe that loses, delays, doubles and changes, as ordered. Real HTTP over loopback."""

from __future__ import annotations

import http.client
import json
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit

JSON = {"Content-Type": "application/json"}


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True)
class Fault:
    """What happens to one request. `forward`: how often Stripe gets it; `answer`: what is said instead of the truth
    (None: the truth); `change`: what becomes of the answer's JSON; `lose`: nothing comes back but a reset."""

    forward: int = 1
    answer: tuple[int, Any, dict[str, str]] | None = None
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    cut: bool = False
    lose: bool = False
    delay_s: float = 0.0


def lose_answer() -> Fault:
    return Fault(lose=True)


def delay(seconds: float) -> Fault:
    return Fault(delay_s=seconds)


def cut_answer() -> Fault:
    return Fault(cut=True)


def error_after_forwarding(status: int = 500) -> Fault:
    return Fault(answer=(status, {"error": {"type": "api_error", "message": "Sorry."}}, {}))


def error_instead(status: int, code: str | None = None, kind: str = "invalid_request_error", **headers: str) -> Fault:
    """Stripe never gets it. Headers with underscores for dashes."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Fault(forward=0, answer=(status, {"error": {"type": kind, "code": code, "message": "No."}}, names))


def doubled_and_lost() -> Fault:
    """Something in between sends it again by itself, and then loses both answers."""
    return Fault(forward=2, lose=True)


def changed(change: Callable[[dict[str, Any]], dict[str, Any]]) -> Fault:
    return Fault(change=change)


@dataclass
class Proxy:
    """Faults are used up in the order in which they are ordered, by method (POST or GET)."""

    upstream: str
    seen: list[Seen] = field(default_factory=list)
    _faults: dict[str, list[Fault]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __enter__(self) -> Self:
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                proxy._serve(self)

            def do_POST(self) -> None:
                proxy._serve(self)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def reset(self) -> None:
        with self._lock:
            self.seen.clear()
            self._faults.clear()

    def order(self, fault: Fault, *, method: str = "POST") -> None:
        with self._lock:
            self._faults.setdefault(method, []).append(fault)

    def posts(self) -> list[Seen]:
        return [one for one in self.seen if one.method == "POST"]

    def gets(self, path: str) -> list[Seen]:
        return [one for one in self.seen if one.method == "GET" and urlsplit(one.path).path == path]

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length", 0)))
        seen = Seen(handler.command, handler.path, dict(handler.headers.items()), body)
        with self._lock:
            self.seen.append(seen)
            waiting = self._faults.get(seen.method)
            fault = waiting.pop(0) if waiting else Fault()
        answer: tuple[int, bytes, dict[str, str]] = (500, b"", {})
        for _ in range(fault.forward):
            answer = self._forward(seen)
        if fault.answer is not None:
            status, content, headers = fault.answer
            answer = status, json.dumps(content).encode(), JSON | headers
        if fault.change is not None:
            answer = answer[0], json.dumps(fault.change(json.loads(answer[1]))).encode(), JSON
        time.sleep(fault.delay_s)
        try:
            _answer(handler, answer, fault)
        except OSError:  # it did not wait
            handler.close_connection = True

    def _forward(self, seen: Seen) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection(urlsplit(self.upstream).netloc, timeout=10)
        try:
            headers = {name: it for name, it in seen.headers.items() if name.lower() not in ("host", "connection")}
            connection.request(seen.method, seen.path, seen.body or None, headers)
            response = connection.getresponse()
            return response.status, response.read(), JSON
        finally:
            connection.close()


def _answer(handler: BaseHTTPRequestHandler, answer: tuple[int, bytes, dict[str, str]], fault: Fault) -> None:
    if fault.lose:
        # A linger time of zero makes close() send RST instead of FIN (socket(7)).
        handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        handler.close_connection = True
        handler.connection.close()
        return
    status, body, headers = answer
    handler.send_response(status)
    for name, value in (headers | {"Content-Length": str(len(body))}).items():
        handler.send_header(name, value)
    handler.end_headers()
    handler.wfile.write(body[: len(body) // 2] if fault.cut else body)
    handler.wfile.flush()
    handler.close_connection = handler.close_connection or fault.cut
