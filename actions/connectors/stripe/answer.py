"""From a reply to what it proves. Pure.

"Advanced error handling" and "Idempotent requests": a key replays the status and the body of the first request whose
execution began, a 500 as well; rate limiters run before that. "Rate limits": a lock timeout means that the object
could not be accessed, and the same request is to be made again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from actions.canonical import BadJson, read_json
from actions.connectors.base import Answer, NotSendable, Result, Wanted, classify, is_replayed
from actions.connectors.stripe.ledger import entry_of, state_of
from actions.connectors.stripe.request import payment_of
from actions.connectors.values import Unreadable
from actions.transport import Reply

Meaning = tuple[Result, str]

# "Error codes", as far as they say more than their status.
_REFUSALS: Mapping[str, str] = {
    "charge_already_refunded": "effect_exists_elsewhere",
    "charge_disputed": "payment_disputed",
    "refund_disputed_payment": "payment_disputed",
}
# "Errors", types that speak of no refusal.
_PROVES_NOTHING: Mapping[str, str] = {"idempotency_error": "key_used_otherwise", "api_error": "server_error"}
_CONFLICT: Meaning = (Result.NO_ANSWER, "conflict")
_NOT_PROCESSED: Meaning = (Result.NOT_SENT, "not_processed")


def read(wanted: Wanted, reply: Reply) -> Answer:
    answer = classify(reply)
    if answer is None:
        return _read_success(wanted, reply)
    if not reply.complete or is_replayed(reply):
        return answer
    result, reason = _read_error(reply) or (answer.result, answer.reason)
    if result is Result.REFUSED and _advice(reply) == "true":
        # Stripe says that the same request may end otherwise: then this refusal is not its last word.
        result, reason = Result.NO_ANSWER, "unclear_status"
    return Answer(result, reason, http_status=reply.status)


def _advice(reply: Reply) -> str:
    """Stripe's `Stripe-Should-Retry`. It only ever makes us more careful: nothing is refused because of it."""
    return reply.headers.get("stripe-should-retry", "").strip().lower()


def _read_error(reply: Reply) -> Meaning | None:
    """What Stripe's error object adds to the status of a 4xx; None when it adds nothing, or there is none."""
    kind, code = error_of(reply)
    if reply.status is None or not 400 <= reply.status < 500:
        return None
    if code == "idempotency_key_in_use":
        return _CONFLICT
    if kind in _PROVES_NOTHING:
        return Result.NO_ANSWER, _PROVES_NOTHING[kind]
    return _came_too_fast(reply, code) or _refused(reply.status, kind, code)


def _came_too_fast(reply: Reply, code: str) -> Meaning | None:
    """A limiter's refusal, which nothing was executed for, or a lock that was not got."""
    if code == "lock_timeout":
        again = reply.status == 429 and _advice(reply) != "false"
        return _NOT_PROCESSED if again else _CONFLICT
    limited = code == "rate_limit" or "stripe-rate-limited-reason" in reply.headers
    return _NOT_PROCESSED if limited and reply.status in (400, 429) else None  # 400: as it was once


def _refused(status: int, kind: str, code: str) -> Meaning | None:
    if status in (400, 402, 403, 404) and code in _REFUSALS:
        return Result.REFUSED, _REFUSALS[code]
    if status == 402 and kind in ("card_error", "invalid_request_error"):
        return Result.REFUSED, "refused_by_downstream"
    return None


def error_of(reply: Reply) -> tuple[str, str]:
    """`type` and `code` of the error object ("Errors"); empty where they are no texts."""
    try:
        document = read_json(reply.body)
    except BadJson:
        return "", ""
    error = document.get("error") if isinstance(document, dict) else None
    found = [error.get(name) if isinstance(error, dict) else None for name in ("type", "code")]
    kind, code = (value if isinstance(value, str) else "" for value in found)
    return kind, code


def _read_success(wanted: Wanted, reply: Reply) -> Answer:
    if reply.status not in (200, 201):
        return Answer(Result.NO_ANSWER, "unclear_status", http_status=reply.status)
    try:
        return _judge(wanted, reply.status, read_json(reply.body))
    except (BadJson, Unreadable, NotSendable):
        return Answer(Result.NO_ANSWER, "unreadable_2xx", http_status=reply.status)


def _judge(wanted: Wanted, status: int, refund: Any) -> Answer:
    """What proves identity first, then what state it says. A replayed one is the first one's: it names our refund."""
    found, state, (by, payment) = entry_of(refund), state_of(refund), payment_of(wanted)
    differs = tuple(
        name
        for name, got, expected in (
            ("amount_minor", found.amount_minor, wanted.amount_minor),
            ("currency", found.currency, wanted.currency),
            (by, refund.get(by), payment),
            ("key", found.key, wanted.idempotency_key),
        )
        if got is None or got != expected
    )
    if found.entry_id is None:
        differs = ("id", *differs)
    result, reason = (Result.NO_ANSWER, "answer_differs") if differs else (state.result, state.reason)
    if reason == "unknown_state":
        differs = ("status",)
    return Answer(result, reason, found.entry_id, found.amount_minor, found.currency, differs, status)
