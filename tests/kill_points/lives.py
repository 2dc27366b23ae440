"""Processes that begin as a copy of this one and end by themselves, or by being killed.

A copy opens its own connections: this process has none to the database or to Redis, ever.
"""

from __future__ import annotations

import gc
import json
import os
import socket
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer


@dataclass(frozen=True)
class Life:
    """`said`: what it told, thing by thing; `killed`: by whom is known."""

    said: list[Any]
    killed: bool


class Broken(Exception):
    """A process did not end as it should: the text is its own."""


def live(act: Callable[[Callable[[Any], None]], None], beside: Callable[[], None] = lambda: None) -> Life:
    """Runs `act` in a copy of this process, and meanwhile `beside` here. `act` is given what tells this side
    something (anything that JSON can hold). Raises Broken for one that ended by an exception."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reads)
        _be(act, writes)
    os.close(writes)
    beside()
    with os.fdopen(reads) as pipe:
        said = [json.loads(line) for line in pipe]
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return Life(said, killed=True)
    if os.waitstatus_to_exitcode(status):
        raise Broken(said[-1] if said else f"ended with {status}")
    return Life(said, killed=False)


def _be(act: Callable[[Callable[[Any], None]], None], writes: int) -> None:
    def tell(what: Any) -> None:
        text = json.dumps(what).encode() + b"\n"
        while text:
            text = text[os.write(writes, text) :]

    try:
        act(tell)
    except BaseException:
        tell(traceback.format_exc())
        os._exit(1)
    # Without a word to anybody, as if the machine stopped; what it wanted to say, it has said.
    os._exit(0)


def stay_as_it_is() -> None:
    """What is loaded by now is not walked through again and again, which would copy its pages in each copy."""
    gc.collect()
    gc.freeze()


# --- a web server for one request


class _Quiet(WSGIRequestHandler):
    wbufsize = 65_536  # an answer leaves in one piece, as from servers that are built for more than one

    def log_message(self, *_: object) -> None: ...


class Web(WSGIServer):
    """Listens from the beginning; `handle_request` is for the copy."""

    def __init__(self, application: Any) -> None:
        super().__init__(("127.0.0.1", 0), _Quiet)
        self.set_app(application)
        self.timeout = 10

    def server_bind(self) -> None:
        # Without asking a name server what our name is.
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = "127.0.0.1", self.server_address[1]
        self.setup_environ()


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: str = ""

    def as_bytes(self) -> bytes:
        lines = [f"{self.method} {self.path} HTTP/1.0", "Host: 127.0.0.1", f"Content-Length: {len(self.body)}"]
        lines += [f"{name}: {value}" for name, value in self.headers.items()]
        return "\r\n".join([*lines, "", self.body]).encode()


@dataclass
class Answered:
    """What came back; `status` is None for an answer that did not come whole: nobody was told anything."""

    status: int | None = None
    body: str = ""


def ask(web: Web, request: Request, answered: Answered) -> None:
    """Asks as a client would that gives up when the connection ends."""
    received = b""
    try:
        with socket.create_connection(web.server_address[:2], timeout=10) as found:
            web.socket.close()  # the copy has it; alone, it is gone with the copy
            found.sendall(request.as_bytes())
            while part := found.recv(65_536):
                received += part
    except OSError:
        return
    head, ended, body = received.partition(b"\r\n\r\n")
    lines = head.decode("latin-1").lower().split("\r\n")
    size = next((int(line.split(":")[1]) for line in lines if line.startswith("content-length:")), None)
    if ended and size == len(body):
        answered.status, answered.body = int(lines[0].split()[1]), body.decode()
