"""From a reply to what it proves. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from actions.canonical import BadJson, read_json
from actions.connectors.base import REFUSED_STATUSES, Answer, Result, Target, Wanted, classify, is_replayed
from actions.connectors.http_json.config import KNOWN_ERRORS
from actions.connectors.values import (
    Unreadable,
    currency_code,
    decimal_amount,
    evaluate,
    identifier,
    minor_units,
    word,
)
from actions.transport import Reply


def read(target: Target, wanted: Wanted, reply: Reply) -> Answer:
    config = target.config
    if not reply.complete or reply.status is None:
        return cast(Answer, classify(reply))
    document = parse(reply)
    refused = (REFUSED_STATUSES | set(config.get("refused", ()))) - set(config.get("no_answer", ()))
    answer = _known_error(config, reply, document) or classify(reply, refused=refused)
    if answer is not None:
        return answer
    try:
        return _judge(config["answer"], wanted, reply.status, document)
    except Unreadable:
        return Answer(Result.NO_ANSWER, "unreadable_2xx", http_status=reply.status)


def parse(reply: Reply) -> Any:
    """The body as JSON, or None: nothing that can be asked about has a null body."""
    try:
        return read_json(reply.body)
    except BadJson:
        return None


def _known_error(config: Mapping[str, Any], reply: Reply, document: Any) -> Answer | None:
    for rule in config.get("known_errors", ()):
        if rule["status"] == reply.status and ("when" not in rule or holds(rule["when"], document)):
            break
    else:
        return None
    if is_replayed(reply):
        return Answer(Result.NO_ANSWER, "replayed_error", http_status=reply.status)
    result = Result.NOT_SENT if rule["result"] == "not_processed" else Result(rule["result"])
    reason = rule.get("reason", KNOWN_ERRORS[rule["result"]][0])
    return Answer(result, reason, http_status=reply.status)


def holds(condition: str, document: Any) -> bool:
    try:
        return evaluate(condition, document) is True
    except Unreadable:
        return False


def money(spec: Mapping[str, str], document: Any) -> tuple[int | None, str | None]:
    currency = currency_code(evaluate(spec["currency"], document)) if "currency" in spec else None
    if "amount" in spec:
        return decimal_amount(evaluate(spec["amount"], document), currency), currency
    if "amount_minor" in spec:
        return minor_units(evaluate(spec["amount_minor"], document)), currency
    return None, currency


def _judge(spec: Mapping[str, Any], wanted: Wanted, status: int, document: Any) -> Answer:
    """A readable 2xx: what proves identity first, then what state it says."""
    if not isinstance(document, dict | list):
        raise Unreadable("neither an object nor a list")
    external_id = identifier(evaluate(spec["id"], document))
    amount_minor, currency = money(spec, document)
    differs = ["id"] if external_id is None else []
    if wanted.amount_minor is not None:
        # Where the id is trusted alone, an echo may be missing, but not be another one.
        missing = {None} if spec.get("trust_id_alone") else set()
        differs += ["amount_minor"] if amount_minor not in {wanted.amount_minor, *missing} else []
        differs += ["currency"] if currency not in {(wanted.currency or "").upper(), *missing} else []
    for name, value in (("subject", wanted.subject), ("key", wanted.idempotency_key)):
        if name in spec and word(evaluate(spec[name], document)) != value:
            differs.append(name)
    result, reason = (Result.NO_ANSWER, "answer_differs") if differs else _state(spec, status, document)
    if reason == "unknown_state":
        differs.append("status")
    return Answer(result, reason, external_id, amount_minor, currency, tuple(differs), status)


def _state(spec: Mapping[str, Any], status: int, document: Any) -> tuple[Result, str]:
    if "status" not in spec:
        return (Result.ACCEPTED, "accepted") if status == 202 else (Result.CONFIRMED, "confirmed")
    said = evaluate(spec["status"], document)
    for name, result, reason in (
        ("confirmed", Result.CONFIRMED, "confirmed"),
        ("pending", Result.ACCEPTED, "accepted"),
        ("failed", Result.REFUSED, "declined_by_downstream"),
    ):
        if any(type(said) is type(known) and said == known for known in spec.get(name, ())):  # True is not 1
            return result, reason
    return Result.NO_ANSWER, "unknown_state"
