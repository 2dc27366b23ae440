"""The /_control endpoints: ordering faults, setting the service up, reading what really happened."""

from typing import Any

from sandbox import books, fault_queue, seen, store, validation, webhooks
from sandbox.config import change_config, config_json, read_config
from sandbox.faults import FAULTS
from sandbox.service import Answer, Service
from sandbox.validation import Check
from sandbox.wire import Refused, Request, json_response

_FAULT_CHECKS: dict[str, Check] = {
    "order": validation.text,
    "fault": validation.text,
    "times": validation.integer(1, 1_000_000),
    "seconds": validation.number(0, 3600),
}
_ENTRY_CHECKS: dict[str, Check] = {
    "order": validation.text,
    "amount_minor": validation.amount_minor,
    "currency": validation.currency,
    "type": validation.one_of(*books.ENTRY_TYPES),
    "status": validation.one_of(*books.ENTRY_STATUSES),
    "idempotency_key": validation.optional(validation.text),
    "created": validation.optional(validation.moment),
    "metadata": validation.metadata,
}


def post_fault(service: Service, request: Request) -> Answer:
    """Order a fault: for the next requests of an order, or for the listener. 201 with what was ordered."""
    values: dict[str, Any] = validation.check_fields(
        validation.parse_object(request.body), _FAULT_CHECKS, required=("fault",)
    )
    fault = FAULTS.get(values["fault"])
    if fault is None:
        message = f"there is no fault {values['fault']!r}; valid: {', '.join(FAULTS)}"
        raise Refused(422, "unknown_fault", message, valid=list(FAULTS))
    if "seconds" in values and fault.seconds is None:
        timed = [name for name, other in FAULTS.items() if other.seconds is not None]
        message = f"{fault.name} takes no seconds; these do: {', '.join(timed)}"
        raise Refused(422, "invalid_field", message, valid=timed)
    seconds: float | None = values.get("seconds", fault.seconds)
    if fault.target == "listener":
        return _refuse_connections(service, values, seconds or 0)
    if "order" not in values:
        raise Refused(422, "missing_field", f"{fault.name} needs the order whose requests it is to hit")
    order, times = values["order"], values.get("times", 1)
    with service.store.transaction() as db:
        fault_queue.order_fault(db, order=order, name=fault.name, seconds=seconds, times=times)
    content = {"order": order, "fault": fault.name, "times": times, "seconds": seconds}
    return Answer(json_response(201, content))


def _refuse_connections(service: Service, values: dict[str, Any], seconds: float) -> Answer:
    surplus = [name for name in ("order", "times") if name in values]
    if surplus:
        message = f"refuse_connection hits every order for its seconds; leave out: {', '.join(surplus)}"
        raise Refused(422, "invalid_field", message, valid=["fault", "seconds"])
    service.listener.refuse_for(seconds)
    return Answer(json_response(201, {"fault": "refuse_connection", "seconds": seconds}))


def get_faults(service: Service, request: Request) -> Answer:
    """Faults not yet used up, oldest first, and every fault there is with what it does."""
    with service.store.transaction() as db:
        data = fault_queue.list_faults(db)
    return Answer(json_response(200, {"data": data, "valid": {fault.name: fault.about for fault in FAULTS.values()}}))


def delete_faults(service: Service, request: Request) -> Answer:
    """Take back what was ordered for one order and is not used up yet; 200 with how many orderings that were."""
    order = _only_order(request)
    if order is None:
        raise Refused(422, "missing_field", "name the order whose faults are to go: ?order=…")
    with service.store.transaction() as db:
        gone = fault_queue.take_back(db, order)
    return Answer(json_response(200, {"order": order, "taken_back": gone}))


def post_config(service: Service, request: Request) -> Answer:
    """Change the settings given; 200 with all of them."""
    content = validation.parse_object(request.body)
    with service.store.transaction() as db:
        config = change_config(db, content)
    return Answer(json_response(200, config_json(config)))


def get_config(service: Service, request: Request) -> Answer:
    with service.store.transaction() as db:
        config = read_config(db)
    return Answer(json_response(200, config_json(config)))


def get_requests(service: Service, request: Request) -> Answer:
    """Every POST to /v1/refunds, or every one for an order, in the order of arrival."""
    order = _only_order(request)
    with service.store.transaction() as db:
        data = seen.list_requests(db, order)
    return Answer(json_response(200, {"data": data}))


def get_true_ledger(service: Service, request: Request) -> Answer:
    """What is really booked: no lag, no pages, no faults."""
    order = _only_order(request)
    with service.store.transaction() as db:
        entries = books.list_entries(db, order=order)
    return Answer(json_response(200, {"data": [books.ledger_json(entry) for entry in entries]}))


def post_entry(service: Service, request: Request) -> Answer:
    """Write an entry into the ledger by hand; 201 with the entry."""
    values: dict[str, Any] = validation.check_fields(
        validation.parse_object(request.body), _ENTRY_CHECKS, required=("order", "amount_minor", "currency")
    )
    with service.store.transaction() as db:
        entry = books.add_entry(
            db,
            order=values["order"],
            amount_minor=values["amount_minor"],
            currency=values["currency"],
            entry_type=values.get("type", "refund"),
            status=values.get("status", "succeeded"),
            idempotency_key=values.get("idempotency_key"),
            created=values.get("created"),
            metadata=values.get("metadata", {}),
        )
        webhooks.announce(db, read_config(db), entry, f"{entry.type}.created")
    service.webhook_bell.set()
    return Answer(json_response(201, books.ledger_json(entry)))


def post_reset(service: Service, request: Request) -> Answer:
    """Back to an empty service: ledger, keys, requests, faults, settings, webhooks under way."""
    with service.store.transaction() as db:
        store.forget_everything(db)
    return Answer(json_response(200, {"reset": True}))


def _only_order(request: Request) -> str | None:
    unknown = [name for name in request.query if name != "order"]
    if unknown:
        raise Refused(
            422, "unknown_parameter", f"there is no parameter {unknown[0]!r}; valid: order", valid=["order"]
        )
    return request.query.get("order")
