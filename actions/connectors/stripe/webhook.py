"""Stripe's events. Pure.

"Receive Stripe events in your webhook endpoint", verifying signatures by hand: `Stripe-Signature: t=…,v1=…`, where v1
is the hex HMAC-SHA256 of `t.body` with the endpoint's secret as it stands (`whsec_` and all). There may be several
v1, one per secret while it is rolled, and other schemes, which are not to be used.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from actions.canonical import read_json
from actions.connectors.base import Notice, Target, Unverified
from actions.connectors.stripe.ledger import entry_of
from actions.connectors.values import Unreadable, identifier, moment, word
from actions.connectors.webhooks import each, sent_at

_REFERENCES = ("charge", "payment_intent")


def hear(target: Target, *, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime) -> Notice:
    """Raises Unverified; ValueError (BadJson, Unreadable) for a genuine body that is no event."""
    when = verify(headers.get("stripe-signature", ""), body, secrets, now)
    event = _object(read_json(body))
    shown = _object(_object(event.get("data")).get("object"))
    delivery_id, account = identifier(event.get("id")), word(event.get("account"))
    if delivery_id is None:
        raise Unreadable("the event has no id")
    topic = word(event.get("type")) or ""
    if account and account != target.account:
        return Notice(delivery_id, when, topic)  # of another connected account: none of ours
    entries = tuple(entry_of(refund) for refund in _refunds(shown))
    return Notice(
        delivery_id=delivery_id,
        sent_at=when,
        topic=topic,
        keys=each([_caused_by(event), *(entry.key for entry in entries)]),
        subjects=each(entry.subject for entry in entries),
        external_ids=each([identifier(shown.get("id")), *(_reference(shown.get(name)) for name in _REFERENCES)]),
        entries=entries,
        as_of=moment(event.get("created")),  # "The Event object": its data never change
    )


def verify(header: str, body: bytes, secrets: Sequence[str], now: datetime) -> datetime:
    """When Stripe signed it. Raises Unverified."""
    pairs = [(name.strip(), value.strip()) for name, _, value in (item.partition("=") for item in header.split(","))]
    times, given = ([value for name, value in pairs if name == wanted] for wanted in ("t", "v1"))
    if len(times) != 1 or not given:
        raise Unverified("The header Stripe-Signature is missing, or has no time and v1.")
    when, signed = sent_at(times[0], now), times[0].encode() + b"." + body
    # An empty secret would let anybody sign.
    expected = [hmac.new(key.encode(), signed, hashlib.sha256).hexdigest().encode() for key in secrets if key]
    if not any(hmac.compare_digest(one, other.encode("utf-8", "replace")) for one in expected for other in given):
        raise Unverified("No signature fits the body and a secret.")
    return when


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise Unreadable("not an event")
    return found


def _refunds(shown: dict[str, Any]) -> list[Any]:
    """The refunds that an event shows: the object itself, or those that a charge lists (older API versions)."""
    if shown.get("object") == "refund":
        return [shown]
    listed = shown.get("refunds") if shown.get("object") == "charge" else None
    found = listed.get("data") if isinstance(listed, dict) else None
    return found if isinstance(found, list) else []


def _caused_by(event: dict[str, Any]) -> str | None:
    """ "The Event object": the idempotency key of the API request that caused it, if one did."""
    request = event.get("request")
    return word(request.get("idempotency_key")) if isinstance(request, dict) else None


def _reference(found: Any) -> str | None:
    """An id, whether or not the object is expanded."""
    return identifier(found.get("id") if isinstance(found, dict) else found)
