"""Reading a ledger page by page: what is the same for every connector. Pure but for the `ask` that is handed in."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from actions import transport
from actions.canonical import BadJson, read_json
from actions.connectors.base import LookupFailed, Page, text_of
from actions.transport import Reply

MAX_PAGES = 100

# One page, asked for with a cursor (None: the first), and the cursor of the next (None: there is none).
Ask = Callable[[str | None], tuple[Page, str | None]]


def follow(ask: Ask, *, max_pages: int = MAX_PAGES, begin: str | None = None) -> Iterator[Page]:
    """Every page, in order; with `begin` only those behind that cursor. Raises LookupFailed, with the pages seen
    before, when the view is not complete."""
    pages: list[Page] = []
    cursors = set() if begin is None else {begin}
    cursor = begin
    try:
        for _ in range(max_pages):
            found, cursor = ask(cursor)
            page = replace(found, after=cursor)
            pages.append(page)
            yield page
            if cursor is None:
                return
            if cursor in cursors:
                raise LookupFailed("repeated_cursor", f"The cursor {cursor!r} came twice.")
            cursors.add(cursor)
        raise LookupFailed("too_many_pages", f"There are more than {len(pages)} pages.")
    except LookupFailed as failed:
        failed.pages = tuple(pages)
        raise


def complete(reply: Reply) -> Reply:
    """`reply`, if it arrived whole, whatever its status. Raises LookupFailed."""
    if not reply.complete:
        text = transport.REASONS[reply.reason]
        raise LookupFailed(reply.reason, text, http_status=reply.status, body=text_of(reply.body))
    return reply


# A 4xx that says something about us, or about now, and not about the one thing that was asked.
_NOT_THE_QUESTION = frozenset({401, 403, 408, 429})


def no_view(status: int | None, body: str) -> LookupFailed:
    """What an answer comes to that is not a whole 200."""
    refused = status is not None and 400 <= status < 500 and status not in _NOT_THE_QUESTION
    reason = "bad_question" if refused else "http_error"
    return LookupFailed(reason, f"HTTP {status}.", http_status=status, body=body)


def document_of(reply: Reply) -> Any:
    """The JSON of a whole 200: a 206 would be part of a view, a 202 none yet. Raises LookupFailed."""
    status, body = complete(reply).status, text_of(reply.body)
    if status != 200:
        raise no_view(status, body)
    try:
        return read_json(reply.body)
    except BadJson as wrong:
        raise LookupFailed("unreadable_page", str(wrong), http_status=status, body=body) from wrong
