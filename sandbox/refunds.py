"""POST /v1/refunds: validate, find the fault, book at most once per key, decide the answer.

What is decided is committed before the answer leaves; how the answer leaves is the fault's business.
"""

import hashlib
import json
import sqlite3
import time
from dataclasses import dataclass, replace
from typing import Any

from sandbox import books, fault_queue, seen, validation, webhooks
from sandbox.config import Config, read_config
from sandbox.fault_queue import OrderedFault
from sandbox.faults import Fault, Wish
from sandbox.service import Answer, Service
from sandbox.wire import Refused, Request, Response, json_response, refusal_response

REPLAYED = ("Idempotent-Replayed", "true")
MAX_KEY = 255

_CHECKS: dict[str, validation.Check] = {
    "order": validation.text,
    "amount_minor": validation.amount_minor,
    "currency": validation.currency,
    "metadata": validation.metadata,
}


def post_refund(service: Service, request: Request) -> Answer:
    """Answer a refund request. Every one is recorded on arrival, even a malformed one."""
    with service.store.transaction() as db:
        config = read_config(db)
        number = _record(db, request)
    try:
        key = read_key(request)
        wish = read_wish(request.body)
        if not config.dedupes:
            return _process(service, config, number, wish, key)
        if not service.keys_in_use.take(key):
            raise Refused(409, "key_in_use", "a request with this Idempotency-Key is still running")
        try:
            return _process(service, config, number, wish, key)
        finally:
            service.keys_in_use.release(key)
    except Refused as refused:
        with service.store.transaction() as db:
            seen.finish_request(db, number, status=refused.status)
        return Answer(refusal_response(refused))


def read_key(request: Request) -> str:
    """The idempotency key, without the quotes that the IETF draft puts around it; raises Refused (400)."""
    key = request.headers.get("idempotency-key", "")
    if len(key) >= 2 and key[0] == key[-1] == '"':
        key = key[1:-1]
    if not key:
        raise Refused(400, "missing_idempotency_key", "send an Idempotency-Key header")
    if len(key) > MAX_KEY or not all("!" <= character <= "~" for character in key):
        raise Refused(400, "bad_idempotency_key", f"an Idempotency-Key has 1 to {MAX_KEY} visible ASCII characters")
    return key


def read_wish(body: bytes) -> Wish:
    """The refund asked for; raises Refused (400 for what is not JSON, 422 for a wrong field)."""
    content = validation.parse_object(body)
    values: dict[str, Any] = validation.check_fields(content, _CHECKS, required=("order", "amount_minor", "currency"))
    return Wish(**{"metadata": {}, **values})


def _record(db: sqlite3.Connection, request: Request) -> int:
    """Note the POST with what can be read of it."""
    body: object
    order = key = None
    try:
        content = validation.parse_object(request.body)
        body, order = content, validation.text(content.get("order"))
    except Refused:
        body = request.body.decode("utf-8", "replace")
    except ValueError:
        body = content
    try:
        key = read_key(request)
    except Refused:
        key = request.headers.get("idempotency-key")
    return seen.record_request(db, order=order, idempotency_key=key, body=body)


def _process(service: Service, config: Config, number: int, wish: Wish, key: str) -> Answer:
    time.sleep(config.latency_ms / 1000)
    with service.store.transaction() as db:
        ordered, response = _decide(db, config, number, wish, key)
    service.webhook_bell.set()
    if ordered is None:
        return Answer(response)
    if ordered.fault.delays_answer:
        time.sleep(ordered.seconds)
    return Answer(response, ordered.fault.deliver, ordered.seconds)


@dataclass(frozen=True)
class _Outcome:
    """What the books say to a request: the true answer (None if nothing was booked), whether its key was
    known, and the entry booked just now."""

    true: Response | None = None
    replayed: bool = False
    entry: books.Entry | None = None


def _decide(
    db: sqlite3.Connection, config: Config, number: int, wish: Wish, key: str
) -> tuple[OrderedFault | None, Response]:
    """Book and store what is to be booked and stored; returns the fault met and the answer to deliver."""
    ordered = fault_queue.next_fault(db, wish.order, "refund")
    fault = ordered.fault if ordered else None
    refuses = fault is not None and fault.refuses
    outcome = _Outcome() if refuses else _ask_the_books(db, config, wish, key, ordered)
    response = _make_answer(fault, wish, outcome)
    if config.dedupes and not refuses and not outcome.replayed:
        # What the service itself got wrong is what its key replays; what is lost on the way is not.
        kept = outcome.true if outcome.true and not (fault and fault.keeps_answer) else response
        books.store_answer(db, key, _digest(wish), kept)
    if ordered is not None:
        fault_queue.use_fault(db, ordered)
    seen.finish_request(
        db,
        number,
        status=response.status if fault is None or fault.answers else None,
        fault=fault.name if fault else None,
        entry_id=outcome.entry.id if outcome.entry else None,
        replayed=outcome.replayed,
    )
    return ordered, response


def _ask_the_books(
    db: sqlite3.Connection, config: Config, wish: Wish, key: str, ordered: OrderedFault | None
) -> _Outcome:
    """Find the answer kept with the key, or book; raises Refused (422) for a key used with another body."""
    stored = books.find_stored(db, key) if config.dedupes else None
    if stored is not None:
        if stored.digest != _digest(wish):
            raise Refused(422, "key_reused", "this Idempotency-Key was used with another body")
        return _Outcome(true=replace(stored.response, headers=(REPLAYED,)), replayed=True)
    if ordered is not None and not ordered.fault.books:
        return _Outcome()
    entry = _book(db, config, wish, key, ordered)
    return _Outcome(true=json_response(201, books.refund_json(entry)), entry=entry)


def _make_answer(fault: Fault | None, wish: Wish, outcome: _Outcome) -> Response:
    """The answer to deliver: the fault's, if it has one of its own, else the true one."""
    if fault is None or fault.answer is None:
        assert outcome.true is not None
        return outcome.true
    response = fault.answer(wish, outcome.true)
    return replace(response, headers=(REPLAYED,)) if fault.keeps_answer and outcome.replayed else response


def _book(db: sqlite3.Connection, config: Config, wish: Wish, key: str, ordered: OrderedFault | None) -> books.Entry:
    fault = ordered.fault if ordered else None
    fails_after = ordered.seconds if ordered and ordered.fault.entry_fails_later else None
    entry = books.add_entry(
        db,
        order=wish.order,
        amount_minor=wish.amount_minor,
        currency=wish.currency,
        metadata=wish.metadata,
        idempotency_key=key,
        status=fault.entry_status if fault else "succeeded",
        fails_after=fails_after,
    )
    webhooks.announce(db, config, entry, "refund.created")
    if fails_after is not None:
        failed = replace(entry, status="failed")
        webhooks.announce(db, config, failed, "refund.failed", at=entry.created + fails_after)
    return entry


def _digest(wish: Wish) -> str:
    """Two bodies are the same if they ask for the same, whatever their spelling."""
    content = [wish.order, wish.amount_minor, wish.currency, wish.metadata]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def get_refund(service: Service, request: Request) -> Answer:
    """GET /v1/refunds/{id}: the refund as it is now, no lag."""
    entry_id = request.path.rsplit("/", 1)[-1]
    with service.store.transaction() as db:
        config = read_config(db)
        entry = books.find_entry(db, entry_id)
    time.sleep(config.latency_ms / 1000)
    if entry is None or entry.type != "refund":
        raise Refused(404, "not_found", "there is no such refund")
    return Answer(json_response(200, books.refund_json(entry)))


def get_moved(service: Service, request: Request) -> Answer:
    """Where redirect_302 leads: the fields asked for, dressed as a refund. No such refund exists."""
    amount = request.query.get("amount_minor", "0")
    content = {
        "id": "re_moved",
        "order": request.query.get("order"),
        "amount_minor": int(amount) if amount.isascii() and amount.isdigit() and len(amount) < 20 else 0,
        "currency": request.query.get("currency"),
        "status": "succeeded",
    }
    return Answer(json_response(200, content))
