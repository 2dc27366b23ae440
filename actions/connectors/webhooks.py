"""Proving that a webhook is from its sender and new: what connectors share. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from hmac import compare_digest

from standardwebhooks.webhooks import EmptyWebhookSecretError, Webhook

from actions.connectors.base import Unverified
from actions.connectors.values import Unreadable, identifier

# By the libraries of Stripe and of Standard Webhooks alike; in both directions, as a clock may be ahead.
TOLERANCE = timedelta(seconds=300)
_SECONDS = re.compile(r"[0-9]{1,11}", re.ASCII)


def sent_at(seconds: str, now: datetime) -> datetime:
    """The signed time, in Unix seconds, if it is close to `now`. Raises Unverified."""
    if not _SECONDS.fullmatch(seconds):
        raise Unverified("The time of the signature can't be read.")
    when = datetime.fromtimestamp(int(seconds), tz=UTC)
    if abs(now - when) > TOLERANCE:
        raise Unverified(f"It was signed at {when.isoformat()}, too far from now.")
    return when


def standard(headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime) -> tuple[str, datetime]:
    """The id and the time of a delivery signed by Standard Webhooks, symmetric scheme. Raises Unverified.

    `secrets`: `whsec_…`, any of them. The library's own `verify` reads the host's clock; here `now` is the clock.
    """
    try:
        text, delivery_id = body.decode(), identifier(headers.get("webhook-id"))
    except (UnicodeDecodeError, Unreadable):
        raise Unverified("The body or the id is no text.") from None
    if delivery_id is None:
        raise Unverified("The header webhook-id is missing.")
    when = sent_at(headers.get("webhook-timestamp", ""), now)
    given = [found.encode("utf-8", "replace") for found in headers.get("webhook-signature", "").split()]
    expected = [key.sign(delivery_id, when, text).encode() for key in _usable(secrets)]
    if not any(compare_digest(one, other) for one in expected for other in given):
        raise Unverified("No signature fits the body and a secret.")
    return delivery_id, when


def _usable(secrets: Sequence[str]) -> list[Webhook]:
    """An empty secret would let anybody sign; one that is not base64 can't be meant."""
    found = []
    for secret in secrets:
        try:
            found.append(Webhook(secret))
        except (ValueError, EmptyWebhookSecretError):
            continue
    return found


def each(values: Iterable[str | None]) -> tuple[str, ...]:
    """Those that are there, once each, in order."""
    return tuple(dict.fromkeys(value for value in values if value))
