"""Stripe's refunds of one payment, and how one of them is read wherever it is shown. Pure but for `fetch`.

"Search" says that data is searchable within about a minute, later during outages, and not for reading what was just
written; that lists are not subject to that delay; and refunds can't be searched at all. So the payment's refunds are
listed, and told apart by the metadata that was created with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlencode

from actions.connectors.base import Entry, Fetch, LookupFailed, NotSendable, Page, Result, Target, Wanted, text_of
from actions.connectors.paging import document_of, follow
from actions.connectors.stripe.amounts import from_stripe
from actions.connectors.stripe.request import KEY, SUBJECT, call, payment_of
from actions.connectors.values import Unreadable, currency_code, identifier, minor_units, moment, word
from actions.money import BadAmount
from actions.transport import Call

PER_PAGE = 100  # "Pagination": the most


@dataclass(frozen=True)
class State:
    result: Result
    reason: str
    entry: Literal["final", "pending", "failed"]


# "The Refund object", status. One that succeeded can still fail later ("Refunds", failed refunds).
_ACCEPTED = State(Result.ACCEPTED, "accepted", "pending")
_DECLINED = State(Result.REFUSED, "declined_by_downstream", "failed")
STATES: Mapping[str, State] = {
    "succeeded": State(Result.CONFIRMED, "confirmed", "final"),
    "pending": _ACCEPTED,
    "requires_action": _ACCEPTED,
    "failed": _DECLINED,
    "canceled": _DECLINED,
}
UNKNOWN = State(Result.NO_ANSWER, "unknown_state", "pending")  # neither final nor failed


def state_of(refund: Mapping[str, Any]) -> State:
    return STATES.get(word(refund.get("status")) or "", UNKNOWN)


def entry_of(refund: Any) -> Entry:
    """A refund object. One without our metadata was made by somebody else: it has no key. Raises Unreadable."""
    if not isinstance(refund, dict) or refund.get("object") != "refund":
        raise Unreadable("not a refund")
    metadata = refund.get("metadata") or {}
    if not isinstance(metadata, dict):
        raise Unreadable("metadata is not an object")
    currency = currency_code(refund.get("currency"))
    return Entry(
        entry_id=identifier(refund.get("id")),
        role="effect",
        state=state_of(refund).entry,
        key=word(metadata.get(KEY)),
        subject=word(metadata.get(SUBJECT)),
        amount_minor=amount_of(refund, "amount", currency),
        currency=currency,
        booked_at=moment(refund.get("created")),
        raw=refund,
    )


def amount_of(holder: Mapping[str, Any], name: str, currency: str | None) -> int | None:
    """In our minor units. Raises Unreadable."""
    amount = minor_units(holder.get(name))
    if amount is None or currency is None:
        return None
    try:
        return from_stripe(amount, currency)
    except BadAmount as wrong:
        raise Unreadable(str(wrong)) from wrong


def ask(target: Target, path: str) -> Call:
    """A question to Stripe. Raises LookupFailed."""
    try:
        return call(target, "GET", path)
    except NotSendable as wrong:
        raise LookupFailed("bad_query", wrong.message) from wrong


def payment_asked_about(wanted: Wanted) -> tuple[str, str]:
    """Raises LookupFailed."""
    try:
        return payment_of(wanted)
    except NotSendable as wrong:
        raise LookupFailed("bad_query", wrong.message) from wrong


def look_up(target: Target, wanted: Wanted, fetch: Fetch) -> Iterator[Page]:
    """All refunds of the payment, newest first: by key and by subject it is the same question."""
    by, payment = payment_asked_about(wanted)

    def one(cursor: str | None) -> tuple[Page, str | None]:
        query = {by: payment, "limit": str(PER_PAGE)} | ({"starting_after": cursor} if cursor else {})
        return _page(ask(target, f"/v1/refunds?{urlencode(query)}"), fetch)

    yield from follow(one)


def _page(question: Call, fetch: Fetch) -> tuple[Page, str | None]:
    reply = fetch(question)
    document, body, reason = document_of(reply), text_of(reply.body), "unreadable_page"
    try:
        items, more = _list(document)
        reason = "unreadable_entry"
        entries = tuple(entry_of(item) for item in items)
        last = entries[-1].entry_id if entries else None
        if more and last is None:
            raise Unreadable("there is more, but nothing that says where")
    except Unreadable as wrong:
        raise LookupFailed(reason, str(wrong), http_status=200, body=body) from wrong
    return Page(question.url, 200, entries, body), last if more else None


def _list(document: Any) -> tuple[list[Any], bool]:
    """ "Pagination": a list object has `data` and `has_more`."""
    items, more = (document.get("data"), document.get("has_more")) if isinstance(document, dict) else (None, None)
    if not isinstance(items, list) or not isinstance(more, bool):
        raise Unreadable("the page is not a list that says whether there is more")
    return items, more
