"""From an intent to a call, and what can be configured. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal
from urllib.parse import urlencode

from actions import transport
from actions.connectors.base import NotSendable, Target, Wanted
from actions.connectors.stripe.amounts import to_stripe
from actions.money import BadAmount
from actions.transport import Call

VERSION = "2026-06-24.dahlia"  # what answers are read by, whatever the account's own default is
MAX_KEY = 255  # "Idempotent requests"

# What each of our refunds carries from its first moment on. "Metadata": 40 characters a key, 500 a value.
KEY, INTENT, SUBJECT = "landed_key", "landed_intent", "landed_subject"

By = Literal["charge", "payment_intent"]
_IDS: Mapping[By, re.Pattern[str]] = {
    "charge": re.compile(r"(ch|py)_[A-Za-z0-9_]{1,250}"),
    "payment_intent": re.compile(r"pi_[A-Za-z0-9_]{1,250}"),
}
_REASONS = ("duplicate", "fraudulent", "requested_by_customer")
_FLAGS = ("refund_application_fee", "reverse_transfer")


def check(config: Mapping[str, Any]) -> list[str]:
    return [problem for name, value in config.items() if (problem := _problem(name, value))]


def _problem(name: str, value: Any) -> str:
    if name == "version":
        fits = isinstance(value, str) and re.fullmatch(r"\d{4}-\d\d-\d\d(\.[a-z]+)?", value, re.ASCII)
        return "" if fits else f"version: an API version such as {VERSION}"
    if name == "reason":
        return "" if value in _REASONS else f"reason: one of {', '.join(_REASONS)}"
    if name in _FLAGS:
        return "" if isinstance(value, bool) else f"{name}: true or false"
    return f"{name}: there is no such setting; there are version, reason, {', '.join(_FLAGS)}"


def payment_of(wanted: Wanted) -> tuple[By, str]:
    """Which payment is refunded: the one of the two params that is given. Raises NotSendable."""
    given = [(by, wanted.params[by]) for by in _IDS if wanted.params.get(by) is not None]
    if len(given) != 1:
        raise NotSendable("bad_request", "params name either a charge or a payment_intent, and not both.")
    by, found = given[0]
    if not isinstance(found, str) or not _IDS[by].fullmatch(found):
        raise NotSendable("bad_request", f"params.{by} is not the id of one.")
    return by, found


def headers_of(target: Target) -> dict[str, str]:
    """Raises NotSendable."""
    if not target.secret:
        raise NotSendable("secret_missing", f"The secret of {target.name} is not set in the environment.")
    headers = {
        "Accept": "application/json",
        "Authorization": f"Bearer {target.secret}",
        "Stripe-Version": str(target.config.get("version", VERSION)),
    }
    return headers | ({"Stripe-Account": target.account} if target.account else {})


def call(target: Target, method: str, path: str, *, body: bytes | None = None, **headers: str) -> Call:
    """Headers with underscores for dashes. Raises NotSendable."""
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    made = Call(method, target.base_url.rstrip("/") + path, headers_of(target) | names, body)
    try:
        transport.check(made)
    except ValueError as wrong:
        raise NotSendable("bad_request", f"The request can't be put together: {wrong}") from wrong
    return made


def build(target: Target, wanted: Wanted) -> Call:
    if problems := check(target.config):
        raise NotSendable("bad_config", f"The configuration of {target.name}: {problems[0]}.")
    if len(wanted.idempotency_key) > MAX_KEY:
        raise NotSendable("bad_request", f"Stripe takes keys of up to {MAX_KEY} characters.")
    fields = dict([payment_of(wanted)]) | {"amount": _amount(wanted)} | _configured(target.config)
    fields |= {
        f"metadata[{name}]": value
        for name, value in ((KEY, wanted.idempotency_key), (INTENT, wanted.intent_id), (SUBJECT, wanted.subject))
    }
    return call(
        target,
        "POST",
        "/v1/refunds",
        body=urlencode(fields).encode(),
        Content_Type="application/x-www-form-urlencoded",
        Idempotency_Key=wanted.idempotency_key,
    )


def _amount(wanted: Wanted) -> str:
    """Without an amount Stripe refunds whatever is left, which no answer could be held against."""
    if wanted.amount_minor is None or wanted.currency is None:
        raise NotSendable("bad_request", "A refund at Stripe needs an amount and its currency.")
    try:
        return str(to_stripe(wanted.amount_minor, wanted.currency))
    except BadAmount as wrong:
        raise NotSendable("bad_amount", str(wrong)) from wrong


def _configured(config: Mapping[str, Any]) -> dict[str, str]:
    flags = {name: str(config[name]).lower() for name in _FLAGS if name in config}
    return ({"reason": config["reason"]} if "reason" in config else {}) | flags
