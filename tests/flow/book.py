"""A book on loopback that shows whatever a test writes into it, page by page, and can break wherever a test wants."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

Answer = tuple[int, str]


class Book:
    """Speaks as the sandbox's ledger does. `rows`: as they are shown, in that order; `odd`: another answer to a
    question than the page, or None; `filters`: whether it shows only what it is asked for."""

    def __init__(self, rows: list[Any] | None = None, *, page_size: int = 100, filters: bool = True) -> None:
        self.rows, self.page_size, self.filters = rows or [], page_size, filters
        self.odd: Callable[[dict[str, str]], Answer | None] = lambda _: None
        self.questions: list[dict[str, str]] = []
        book = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, text = book.answer(dict(parse_qsl(urlsplit(self.path).query)))
                body = text.encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, query: dict[str, str]) -> Answer:
        self.questions.append(query)
        odd = self.odd(query)
        if odd is not None:
            return odd
        rows = [row for row in self.rows if self._is_asked_for(row, query)]
        begin = 0
        if cursor := query.get("starting_after"):
            ids = [row.get("id") for row in rows]
            if cursor not in ids:
                return 400, '{"error": {"code": "unknown_cursor"}}'
            begin = ids.index(cursor) + 1
        page = rows[begin : begin + self.page_size]
        return 200, json.dumps({"data": page, "has_more": begin + self.page_size < len(rows)})

    def _is_asked_for(self, row: Any, query: dict[str, str]) -> bool:
        asked = {name: query[name] for name in ("idempotency_key", "order") if name in query}
        if not self.filters or not isinstance(row, dict):
            return True
        return all(row.get(name) == value for name, value in asked.items())


def row(number: int = 1, **columns: Any) -> dict[str, Any]:
    """A row of the book: a refund of 50.00 EUR that nobody here asked for. Without a column: pass None."""
    found = {
        "id": f"re_{number}",
        "order": f"order-{number}",
        "amount_minor": 5_000,
        "currency": "EUR",
        "status": "succeeded",
        "type": "refund",
        "idempotency_key": f"somebody-elses-{number}",
        "created": "2026-11-30T10:00:00Z",
    } | columns
    return {name: value for name, value in found.items() if value is not None}
