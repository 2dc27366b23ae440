"""A receiver of webhooks: a real HTTP server on a free port, that notes what comes and answers as it is told."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Came:
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found


@dataclass
class Receiver:
    url: str = ""
    came: list[Came] = field(default_factory=list)
    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    hold: threading.Event = field(default_factory=threading.Event)

    @property
    def place(self) -> str:
        return self.url.removeprefix("http://").split("/")[0]

    @property
    def types(self) -> list[str]:
        return [one.json["type"] for one in self.came]


@contextmanager
def receiving(**options: Any) -> Iterator[Receiver]:
    """`hold` is set: nothing is held back until a test clears it."""
    found = Receiver(**options)
    found.hold.set()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.came.append(Came(self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            found.hold.wait(8)
            self.send_response(found.status)
            for name, value in found.headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(found.body)))
            self.end_headers()
            self.wfile.write(found.body)

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.url = f"http://127.0.0.1:{server.server_address[1]}/hooks"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield found
        finally:
            found.hold.set()
            server.shutdown()
            thread.join()
