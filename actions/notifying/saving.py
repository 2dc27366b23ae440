"""What an attempt came to: the delivery, its log, and how its endpoint is treated from now on."""

from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from actions import times
from actions.locking import for_change
from actions.models import DeliveryState, DeliveryTry, Endpoint, EventDelivery, TryResult
from actions.notifying import schedule
from actions.notifying.claiming import Claimed
from actions.redaction import redact
from actions.transport import Reply

_GONE: Final = 410
_MOST_ANSWER, _MOST_ERROR = 1_000, 200
GONE: Final = "it answered 410 Gone"


def save(claimed: Claimed, reply: Reply) -> TryResult:
    """Stores the outcome. One that comes after its lease is over counts only if it was taken."""
    with transaction.atomic():
        endpoint = for_change(Endpoint).get(pk=claimed.endpoint_id)
        delivery = for_change(EventDelivery).get(pk=claimed.delivery_id)
        now = times.now()
        result = _result(claimed, reply)
        _log(delivery, reply, result, now)
        if _still_ours(delivery, claimed, result):
            _store(delivery, claimed, reply, result, now)
        _note(endpoint, reply, result, now)
    return result


def taken(reply: Reply) -> bool:
    """A 2xx. Whether its body arrived whole is nobody's concern."""
    return reply.status is not None and 200 <= reply.status < 300


def _result(claimed: Claimed, reply: Reply) -> TryResult:
    if taken(reply):
        return TryResult.DELIVERED
    if reply.status == _GONE:
        return TryResult.GONE
    return TryResult.GIVEN_UP if claimed.attempts >= schedule.MOST_ATTEMPTS else TryResult.AGAIN


def _still_ours(delivery: EventDelivery, claimed: Claimed, result: TryResult) -> bool:
    if delivery.state != DeliveryState.PENDING:
        return False
    mine = (delivery.attempts, delivery.lease_until) == (claimed.attempts, claimed.lease_until)
    return mine or result is TryResult.DELIVERED


def _store(delivery: EventDelivery, claimed: Claimed, reply: Reply, result: TryResult, now: datetime) -> None:
    columns: dict[str, Any] = {
        "lease_until": None,
        "next_at": None,
        "last_status": reply.status,
        "last_error": error_of(reply),
    }
    if result is TryResult.DELIVERED:
        columns |= {"state": DeliveryState.DELIVERED, "delivered_at": now}
    elif result is TryResult.AGAIN:
        columns["next_at"] = now + _pause(claimed.attempts, reply, now)
    else:
        columns["state"] = DeliveryState.GIVEN_UP
    EventDelivery.objects.filter(pk=delivery.pk).update(**columns)


def _pause(attempts: int, reply: Reply, now: datetime) -> timedelta:
    found = schedule.wait(attempts, asked=schedule.retry_after(reply.headers, now))
    assert found is not None  # the last attempt is given up, not tried again
    return found


def _note(endpoint: Endpoint, reply: Reply, result: TryResult, now: datetime) -> None:
    if result is TryResult.DELIVERED:
        if endpoint.failures:
            Endpoint.objects.filter(pk=endpoint.pk).update(failures=0, not_before=None)
        return
    if result is TryResult.GONE and endpoint.active:
        # With its history: somebody will ask why nothing is told any more.
        endpoint.active, endpoint.inactive_because = False, f"{GONE} ({now:%Y-%m-%d %H:%M} UTC)"
        endpoint.save(update_fields=["active", "inactive_because"])
    pause = max(schedule.hold(endpoint.failures + 1), schedule.retry_after(reply.headers, now) or timedelta(0))
    Endpoint.objects.filter(pk=endpoint.pk).update(failures=F("failures") + 1, not_before=now + pause)


def _log(delivery: EventDelivery, reply: Reply, result: TryResult, now: datetime) -> None:
    DeliveryTry.objects.create(
        delivery=delivery,
        at=now,
        result=result,
        http_status=reply.status,
        error=error_of(reply),
        answer=_beginning(reply.body),
        took_ms=max(0, reply.elapsed_ms),
    )


def error_of(reply: Reply) -> str:
    """In a few words; "" when it was taken."""
    if taken(reply):
        return ""
    if reply.status is not None:
        return f"HTTP {reply.status}"
    return redact(f"{reply.reason}: {reply.detail}".replace("\x00", ""))[:_MOST_ERROR]


def _beginning(body: bytes) -> str:
    return redact(body.decode("utf-8", "replace").replace("\x00", "\N{SYMBOL FOR NULL}"))[:_MOST_ANSWER]
