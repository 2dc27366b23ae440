"""GET /v1/ledger: the book that others look into, as late and as broken as was ordered."""

import sqlite3
import time

from sandbox import books, fault_queue, seen, validation
from sandbox.config import read_config
from sandbox.service import Answer, Service
from sandbox.wire import Refused, Request, json_response

PARAMETERS = ("idempotency_key", "order", "since", "limit", "starting_after")


def get_ledger(service: Service, request: Request) -> Answer:
    """One page, oldest first; entries younger than the lag are not shown."""
    unknown = [name for name in request.query if name not in PARAMETERS]
    if unknown:
        message = f"there is no parameter {unknown[0]!r}; valid: {', '.join(PARAMETERS)}"
        raise Refused(422, "unknown_parameter", message, valid=list(PARAMETERS))
    order, key = request.query.get("order"), request.query.get("idempotency_key")
    cursor = request.query.get("starting_after")
    since = _read_since(request.query.get("since"))
    with service.store.transaction() as db:
        config = read_config(db)
        limit = _read_limit(request.query.get("limit"), config.page_size)
        if cursor is not None and books.find_entry(db, cursor) is None:
            raise Refused(400, "unknown_cursor", "starting_after is not the id of an entry")
        failing = _meets_fault(db, order, key, later_page=cursor is not None)
        found = books.list_entries(
            db,
            order=order,
            idempotency_key=key,
            lag_s=config.ledger_lag_s,
            since=since,
            starting_after=cursor,
            limit=limit + 1,
        )
    time.sleep(config.latency_ms / 1000)
    if failing:
        # Raised out here: inside the transaction it would roll back the count of the fault.
        raise Refused(500, "ledger_unavailable", "the ledger cannot be read at the moment")
    data = [books.ledger_json(entry) for entry in found[:limit]]
    return Answer(json_response(200, {"data": data, "has_more": len(found) > limit}))


def _read_limit(text: str | None, page_size: int) -> int:
    """How many entries the page may hold: what was asked for, at most the page size."""
    if text is None:
        return page_size
    if not (text.isascii() and text.isdigit() and len(text) < 10 and int(text) > 0):
        raise Refused(422, "invalid_parameter", "limit must be a positive integer")
    return min(int(text), page_size)


def _read_since(text: str | None) -> float | None:
    """ISO 8601 with an offset, as unix seconds. Nothing older than that is shown."""
    if text is None:
        return None
    try:
        return validation.moment(text)
    except ValueError as wrong:
        raise Refused(422, "invalid_parameter", "since must be an ISO 8601 time with an offset") from wrong


def _meets_fault(db: sqlite3.Connection, order: str | None, key: str | None, *, later_page: bool) -> bool:
    """Whether this look is to fail: its order, or the order of its key, has a ledger fault waiting."""
    if order is None and key is not None:
        order = seen.find_order_of_key(db, key)
    ordered = fault_queue.next_fault(db, order, "ledger", later_page=later_page) if order else None
    if ordered is None:
        return False
    fault_queue.use_fault(db, ordered)
    return True
