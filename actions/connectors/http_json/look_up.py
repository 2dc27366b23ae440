"""Asking the downstream's ledger, page by page. Pure but for the `fetch` it is given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from actions import transport
from actions.connectors.base import By, Entry, Fetch, LookupFailed, NotSendable, Page, Target, Wanted, text_of
from actions.connectors.http_json.answer import holds, money, parse
from actions.connectors.http_json.request import fill, headers_of, scope_of
from actions.connectors.paging import MAX_PAGES, complete, follow, no_view
from actions.connectors.values import Unreadable, evaluate, identifier, moment, word
from actions.transport import Call, Reply

# A look back shows everybody's entries, and after an outage those of all its time. Its time is limited by whoever
# makes it, who goes on behind the last page another time.
_RECENT_TIMES_MORE = 10


def look_up(target: Target, wanted: Wanted, fetch: Fetch, *, by: By) -> Iterator[Page]:
    spec = target.config.get("look_up", {})
    if by not in spec:
        raise LookupFailed("not_offered", f"{target.name} can't be asked by {by}.")

    yield from _pages(target, by, scope_of(target, wanted), fetch)


def look_back(target: Target, fetch: Fetch, *, since: datetime, cursor: str | None = None) -> Iterator[Page]:
    """Everything booked since then, whoever did it; or of that what is behind `cursor`."""
    if "recent" not in target.config.get("look_up", {}):
        raise LookupFailed("not_offered", f"{target.name} can't be asked for what is recent.")
    when = since.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    scope = {"since": when, "account": target.account}
    yield from _pages(target, "recent", scope, fetch, times_more=_RECENT_TIMES_MORE, begin=cursor)


def _pages(
    target: Target,
    by: str,
    scope: Mapping[str, Any],
    fetch: Fetch,
    *,
    times_more: int = 1,
    begin: str | None = None,
) -> Iterator[Page]:
    spec = target.config["look_up"]

    def ask(cursor: str | None) -> tuple[Page, str | None]:
        call = _question(target, scope, by, cursor)
        # "There is no such thing", said to a cursor, is about the cursor: it ends no look through the whole book.
        absent = None if by == "recent" and cursor is not None else spec[by].get("absent")
        return _page(spec, by, call, fetch(call), absent)

    yield from follow(ask, max_pages=times_more * spec.get("max_pages", MAX_PAGES), begin=begin)


def _question(target: Target, scope: Mapping[str, Any], by: str, cursor: str | None) -> Call:
    look_up = target.config["look_up"]
    try:
        query = {name: word(evaluate(how, scope)) for name, how in look_up[by].get("query", {}).items()}
        if None in query.values():  # without its filter a question would be about everything
            raise Unreadable("a value of the query is empty")
        if cursor is not None:
            query[look_up["cursor_param"]] = cursor
        path = fill(look_up[by]["path"], scope)
        if query:
            path += ("&" if "?" in path else "?") + urlencode(query)
        call = Call("GET", target.base_url.rstrip("/") + path, headers_of(target))
        transport.check(call)
    except (NotSendable, ValueError) as exc:
        raise LookupFailed("bad_query", str(exc)) from exc
    return call


def _page(
    look_up: Mapping[str, Any], by: str, call: Call, reply: Reply, absent: Mapping[str, Any] | None
) -> tuple[Page, str | None]:
    """One page and the cursor of the next, None at the end. `pages` of what it raises is the caller's."""
    document, status, body = parse(complete(reply)), reply.status or 0, text_of(reply.body)
    if absent and absent["status"] == status and holds(absent["when"], document):
        return Page(call.url, status, (), body), None
    if status != 200:  # 206 would be part of a view, 202 none yet
        raise no_view(status, body)
    reason = "unreadable_page"
    try:
        items = evaluate(look_up["items"], document)
        if not isinstance(items, list):
            raise Unreadable("the page holds no list of entries")
        cursor = _next(look_up, document)
        reason = "unreadable_entry"
        # About one intent a row that can't be read proves nothing, so the look fails. Looking through the whole book,
        # one such row must not hide all the others for ever.
        entries, unread = _readable(look_up["entry"], items, skip=by == "recent")
    except Unreadable as exc:
        raise LookupFailed(reason, str(exc), http_status=status, body=body) from exc
    return Page(call.url, status, entries, body, unread), cursor


def _readable(spec: Mapping[str, Any], items: list[Any], *, skip: bool) -> tuple[tuple[Entry, ...], int]:
    found = []
    for item in items:
        try:
            found.append(entry_of(spec, item))
        except Unreadable:
            if not skip:
                raise
    return tuple(found), len(items) - len(found)


def _next(look_up: Mapping[str, Any], document: Any) -> str | None:
    if "cursor" not in look_up:
        return None
    if "more" in look_up:
        more = evaluate(look_up["more"], document)
        if not isinstance(more, bool):
            raise Unreadable("the page doesn't say whether there is more")
        if not more:
            return None
    cursor = word(evaluate(look_up["cursor"], document))
    if cursor is None and "more" in look_up:
        raise Unreadable("the page says that there is more, but not where")
    return cursor


def entry_of(spec: Mapping[str, Any], item: Any) -> Entry:
    """One row of the ledger, wherever it was shown. Raises Unreadable."""
    if not isinstance(item, dict):
        raise Unreadable("an entry is not an object")

    def find(name: str) -> Any:
        return evaluate(spec[name], item) if name in spec else None

    amount_minor, currency = money(spec, item)
    return Entry(
        entry_id=identifier(find("id")),
        role=spec["roles"].get(word(find("role")) or "", "unknown") if "role" in spec else "effect",
        # A state that is not known here is neither final nor failed.
        state=spec["states"].get(word(find("status")) or "", "pending") if "status" in spec else "final",
        key=word(find("key")),
        subject=word(find("subject")),
        amount_minor=amount_minor,
        currency=currency,
        booked_at=moment(find("booked_at")),
        raw=item,
    )
