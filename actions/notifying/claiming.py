"""Claims deliveries that are due, and makes their requests: signed, ready to leave.

Claimed by one conditional UPDATE with a lease: of two processes one has it. Whoever dies with it is followed by
another when the lease is over, which may tell the receiver a second time, under the same webhook-id.
"""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from standardwebhooks import Webhook

from actions import times
from actions.locking import for_change
from actions.models import DeliveryTry, Endpoint, Event, EventDelivery, TryResult
from actions.notifying import secrets
from actions.transport import Call

LEASE: Final = timedelta(seconds=60)  # well over a request's deadline
# So many at once to one endpoint; while it fails, one: a slow one must not take the places of the others.
AT_ONCE: Final = 2


@dataclass(frozen=True)
class Claimed:
    delivery_id: int
    endpoint_id: int
    attempts: int
    lease_until: datetime
    call: Call = field(repr=False)


def claim(most: int) -> list[Claimed]:
    """At most `most` deliveries, in turn of their endpoints; each is this process's until its lease is over."""
    found: list[Claimed] = []
    for pk in list(_endpoints_with_work().values_list("pk", flat=True)):
        if len(found) >= most:
            break
        found += _claim_of(pk, most - len(found))
    return found


def _endpoints_with_work() -> QuerySet[Endpoint]:
    now = times.now()
    due = EventDelivery.objects.filter(endpoint=OuterRef("pk"), next_at__lte=now)
    may = Q(not_before__isnull=True) | Q(not_before__lte=now)
    # By chance: whoever stands first must not always be first.
    return Endpoint.objects.filter(may, Exists(due), active=True).order_by("?")


def _claim_of(endpoint_id: int, most: int) -> list[Claimed]:
    with transaction.atomic():
        endpoint = for_change(Endpoint, skip_locked=True).filter(pk=endpoint_id, active=True).first()
        now = times.now()
        if endpoint is None or (endpoint.not_before is not None and endpoint.not_before > now):
            return []
        room = (1 if endpoint.failures else AT_ONCE) - _under_way(endpoint, now)
        if room <= 0:
            return []
        due = EventDelivery.objects.filter(endpoint=endpoint, next_at__lte=now, give_up_at__gt=now)
        due = due.order_by("next_at", "pk")
        return [_request(endpoint, one, now) for one in due[: min(room, most)] if _take(one, now)]


def _under_way(endpoint: Endpoint, now: datetime) -> int:
    return EventDelivery.objects.filter(endpoint=endpoint, lease_until__gt=now).count()


def _take(delivery: EventDelivery, now: datetime) -> bool:
    until = now + LEASE
    mine = EventDelivery.objects.filter(pk=delivery.pk, next_at=delivery.next_at, attempts=delivery.attempts)
    if not mine.update(next_at=until, lease_until=until, attempts=F("attempts") + 1):
        return False
    if delivery.lease_until is not None:
        DeliveryTry.objects.create(delivery=delivery, at=delivery.lease_until, result=TryResult.LOST)
    return True


def _request(endpoint: Endpoint, delivery: EventDelivery, now: datetime) -> Claimed:
    event = Event.objects.get(pk=delivery.event_id)
    return Claimed(delivery.pk, endpoint.pk, delivery.attempts + 1, now + LEASE, call_of(endpoint, event, now))


def call_of(endpoint: Endpoint, event: Event, now: datetime) -> Call:
    """The request that tells `endpoint` of `event`, signed with every secret that counts now (Standard Webhooks)."""
    text, name = json.dumps(payload(event), separators=(",", ":")), webhook_id(event)
    signatures = [Webhook(secret).sign(name, now, text) for secret in secrets.signing(endpoint, now)]
    headers = {
        "content-type": "application/json",
        "user-agent": "landed-webhooks",
        "webhook-id": name,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": " ".join(signatures),
    }
    return Call("POST", endpoint.url, headers, text.encode())


def webhook_id(event: Event) -> str:
    """The same for every attempt, endpoint and replay: receivers tell by it what they have had already."""
    return f"evt_{event.pk}"


def payload(event: Event) -> dict[str, Any]:
    """Thin: which intent to read, and nothing of what is in it but its status."""
    data: dict[str, Any] = {
        "intent": str(event.intent_id),
        "sequence": event.sequence,
        "position": event.position,
    }
    if event.intent_status:
        data["status"] = event.intent_status
    return {"type": event.type, "timestamp": _time_text(event.at), "data": data}


def _time_text(at: datetime) -> str:
    return at.isoformat().replace("+00:00", "Z")
