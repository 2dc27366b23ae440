"""From configuration and intent to a call. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from actions import transport
from actions.canonical import canonical
from actions.connectors.base import NotSendable, Target, Wanted
from actions.connectors.http_json.config import PLACEHOLDER
from actions.connectors.values import Unreadable, evaluate, identifier
from actions.transport import Call


def build(target: Target, wanted: Wanted) -> Call:
    try:
        call = _build(target, wanted)
        transport.check(call)
    except KeyError as exc:  # an intent must not take the loop that sends down with it
        raise NotSendable("bad_config", f"The configuration of {target.name} lacks {exc}.") from exc
    except ValueError as exc:  # Unreadable, the transport's, and rfc8785's for what JSON can't carry exactly
        raise NotSendable("bad_request", f"The request can't be put together: {exc}") from exc
    key = wanted.idempotency_key
    sent = (*call.headers.values(), (call.body or b"").decode(), call.url)
    if target.dedupes and not any(key in part for part in sent):
        raise NotSendable("key_not_sent", f"{target.name} dedupes by key, but the configuration sends no key.")
    return call


def _build(target: Target, wanted: Wanted) -> Call:
    send, scope = target.config["send"], scope_of(target, wanted)
    headers, body = headers_of(target), _body(send, scope)
    if body is not None:
        headers["Content-Type"] = "application/json"
    if "key_header" in send:
        headers[send["key_header"]] = wanted.idempotency_key
    return Call(send["method"], target.base_url.rstrip("/") + fill(send["path"], scope), headers, body)


def scope_of(target: Target, wanted: Wanted) -> dict[str, Any]:
    return {
        "intent_id": wanted.intent_id,
        "idempotency_key": wanted.idempotency_key,
        "kind": wanted.kind,
        "subject": wanted.subject,
        "amount_minor": wanted.amount_minor,
        "amount": wanted.amount,
        "currency": wanted.currency,
        "params": dict(wanted.params),
        "account": target.account,
    }


def headers_of(target: Target) -> dict[str, str]:
    words = {"secret": target.secret or "", "account": target.account}
    headers = {"Accept": "application/json"}
    for name, template in target.config.get("headers", {}).items():
        if "{secret}" in template and not target.secret:
            raise NotSendable("secret_missing", f"The secret of {target.name} is not set in the environment.")
        # One pass: a secret that contains {account} is not a template.
        headers[name] = PLACEHOLDER.sub(lambda found: words[found[1]], template)
    return headers


def fill(template: str, scope: Mapping[str, Any]) -> str:
    """`/v1/orders/{subject}`: every value becomes one path segment's text, whatever it contains."""

    def value(expression: str) -> str:
        found = identifier(evaluate(expression, scope))
        if found is None or found in (".", ".."):
            raise Unreadable(f"{expression} gives nothing that can stand in a path")
        return quote(found, safe="")

    return PLACEHOLDER.sub(lambda found: value(found[1]), template)


def _body(send: Mapping[str, Any], scope: Mapping[str, Any]) -> bytes | None:
    if "body" not in send:
        return None
    body = evaluate(send["body"], scope)
    if not isinstance(body, dict):
        raise Unreadable("the body's expression gives no object")
    if send.get("omit_nulls"):
        body = {name: value for name, value in body.items() if value is not None}
    return canonical(body).encode()
