"""Takes a delivery: verifies it and keeps it, in one transaction, before it is answered.

What follows from it (`applying`) is done at once when the intent is there, else later, from the sweep.
"""

import hashlib
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db import DataError, IntegrityError, InterfaceError, OperationalError, transaction

from actions import dispatch, evidence, times
from actions.canonical import canonical
from actions.connectors import registry
from actions.connectors.base import HearsWebhooks, Notice, Unverified, text_of
from actions.errors import NotFound, Unauthenticated, Unavailable
from actions.models import Downstream, EvidenceKind
from reconciliation import entries
from reconciliation.entries import Telling
from reconciliation.models import Delivery, DeliveryOutcome, LedgerEntry
from reconciliation.webhooks import applying

log = logging.getLogger(__name__)

# One delivery speaks of a handful of things; whatever names more is not followed further.
_MOST_NAMES: Final = 100
_LONGEST: Final = 255


@dataclass(frozen=True)
class _Heard:
    """What is kept of a delivery. `notice`: None for one that can't be read."""

    delivery_id: str
    notice: Notice | None
    body: bytes


def receive(name: str, *, headers: Mapping[str, str], body: bytes) -> None:
    """Takes one delivery for the downstream called `name`. `headers`: names in lower case.

    Returns once it is kept; the same delivery again changes nothing. A genuine one that can't be read is kept as
    well: sent again it would not be any more readable.

    Raises NotFound (no such downstream, or it sends no webhooks), Unauthenticated (not proven to be from it, or too
    old), Unavailable (our own set-up is incomplete).
    """
    downstream = Downstream.objects.filter(name=name).first()
    if downstream is None or not downstream.webhook_secret_env:
        raise NotFound("There is no such address.")
    secrets = _secrets_of(downstream)
    kept = _keep(downstream, _hear(downstream, headers, body, secrets), secrets)
    if kept is None:
        return
    pk, told = kept
    try:
        applying.apply(pk, told=told)
    except Exception:
        # It is kept: the sweep goes on with it, and the sender need not know.
        log.exception("delivery %s can't be applied now", pk)


def _secrets_of(downstream: Downstream) -> list[str]:
    """The secrets that this process knows, the newer first: two while one is being exchanged for the other."""
    names = [downstream.webhook_secret_env, downstream.webhook_old_secret_env]
    return [secret for name in names if name and (secret := os.environ.get(name))]


def _hear(downstream: Downstream, headers: Mapping[str, str], body: bytes, secrets: Sequence[str]) -> _Heard:
    connector = _ear_of(downstream)
    if not secrets:
        log.error("webhooks of %s: %s is not set here", downstream.name, downstream.webhook_secret_env)
        raise Unavailable("Webhooks can't be verified here at the moment; deliver it again later.")
    target = dispatch.target_of(downstream)
    try:
        notice = connector.hear(target, headers=headers, body=body, secrets=secrets, now=times.now())
    except Unverified as why:
        log.warning("a webhook for %s is not verified: %.200s", downstream.name, why)
        raise Unauthenticated("The delivery could not be verified.") from None
    except ValueError as why:
        log.error("a genuine webhook of %s can't be read: %s", downstream.name, type(why).__name__)
        return _Heard(_digest_of(body), None, body)
    return _Heard(_id_of(notice, body), notice, body)


def _ear_of(downstream: Downstream) -> HearsWebhooks:
    try:
        connector = registry.get(downstream.connector)
    except KeyError as unknown:
        log.error("webhooks of %s: %s", downstream.name, unknown)
        raise Unavailable("Webhooks can't be read here at the moment; deliver it again later.") from None
    if not isinstance(connector, HearsWebhooks):
        raise NotFound("There is no such address.")
    return connector


def _id_of(notice: Notice, body: bytes) -> str:
    found = notice.delivery_id
    return found if found and len(found) <= _LONGEST and _storable(found) == found else _digest_of(body)


def _digest_of(body: bytes) -> str:
    return f"digest:{hashlib.sha256(body).hexdigest()}"


def _storable(text: str) -> str:
    """As every database stores it: without NUL and half surrogates."""
    return text.replace("\x00", "\N{SYMBOL FOR NULL}").encode("utf-8", "backslashreplace").decode()


def _keep(downstream: Downstream, heard: _Heard, secrets: Sequence[str]) -> tuple[int, list[LedgerEntry]] | None:
    """Stores the delivery, its evidence and its entries, together. None: it was there already."""
    if _is_kept(downstream, heard):
        return None
    try:
        return _store(downstream, heard, secrets)
    except (InterfaceError, OperationalError):
        raise  # the database is away: the sender tries again
    except (DataError, IntegrityError, ValueError, OverflowError) as wrong:
        if _is_kept(downstream, heard):
            return None  # the same delivery twice at once: whoever is first is right
        # An amount or a text that no table takes. Sent again it would be no better.
        log.error("a genuine webhook of %s can't be stored: %s", downstream.name, type(wrong).__name__)
        return _store(downstream, _Heard(heard.delivery_id, None, heard.body), secrets)


def _is_kept(downstream: Downstream, heard: _Heard) -> bool:
    return Delivery.objects.filter(downstream=downstream, delivery_id=heard.delivery_id).exists()


def _store(downstream: Downstream, heard: _Heard, secrets: Sequence[str]) -> tuple[int, list[LedgerEntry]]:
    notice = heard.notice
    named = _names_in(notice) if notice is not None else {}
    with transaction.atomic():
        now = times.now()
        ours = applying.concerned(downstream.pk, named)
        seen = evidence.store(
            intent_id=ours[0] if len(ours) == 1 else None,
            kind=EvidenceKind.WEBHOOK,
            source=f"webhook of {downstream.name}",
            content=text_of(heard.body),
            now=now,
            secrets=[*secrets, dispatch.target_of(downstream).secret],
        )
        told, differs = [], []
        if notice is not None and notice.entries:
            telling = Telling(notice.entries, f"webhook {heard.delivery_id}", seen)
            # A clock that is ahead of ours makes no news from the future.
            told = entries.store(downstream, [telling], now=now, as_of=min(notice.as_of or notice.sent_at, now))
            differs = entries.differing(notice.entries, told)
        unreadable = {"outcome": DeliveryOutcome.UNREADABLE, "applied_at": now}
        delivery = Delivery.objects.create(
            downstream=downstream,
            delivery_id=heard.delivery_id,
            topic=_storable(notice.topic)[:100] if notice is not None else "",
            received_at=now,
            sent_at=notice.sent_at if notice is not None else None,
            about=canonical(named | {"entries": [row.pk for row in told], "differs": differs}),
            evidence=seen,
            **({"next_try_at": now} if notice is not None else unreadable),
        )
    return delivery.pk, told


def _names_in(notice: Notice) -> dict[str, list[str]]:
    """What an intent can be found by: keys, ids, and the subjects of what has no key. A key that is somebody
    else's makes the entry somebody else's."""
    keys = [*notice.keys, *(entry.key for entry in notice.entries)]
    ids = [*notice.external_ids, *(entry.entry_id for entry in notice.entries)]
    keyless = [entry.subject for entry in notice.entries if not entry.key]
    return {
        "keys": _each(keys),
        "external_ids": _each(ids),
        "subjects": _each(keyless if notice.entries or any(keys) else notice.subjects),
    }


def _each(texts: Iterable[str | None]) -> list[str]:
    """Those that are there, once each."""
    return list(dict.fromkeys(_storable(text)[:_LONGEST] for text in texts if text))[:_MOST_NAMES]
