"""Delivers webhooks as a payments service does, and looks at what came of them."""

import base64
import itertools
import json
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.test import Client
from standardwebhooks import Webhook

from actions import history, times
from actions.connectors.base import Notice
from actions.connectors.http_json.example import EXAMPLE
from actions.models import Downstream, Intent, Kind, Result
from actions.statuses import Status
from reconciliation import sweep
from reconciliation.models import Check, Delivery, Review
from tests.core.steps import answer, submit
from tests.factories import make_downstream, make_intent, make_kind
from tests.flow.world import Clock

SECRET, OLD_SECRET, FOREIGN = (
    "whsec_" + base64.b64encode(text).decode() for text in (b"the secret of today", b"of yesterday", b"of nobody")
)
_numbers = itertools.count(1)


@dataclass
class Hooks:
    """`kind` goes to `downstream`, which sends signed webhooks here."""

    downstream: Downstream
    kind: Kind
    clock: Clock
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False, enforce_csrf_checks=True))

    # --- sending

    def entry(self, intent: Intent, **more: Any) -> dict[str, Any]:
        """A row of the sandbox's ledger that carries out the intent; a field that is `...` is left out."""
        found: dict[str, Any] = {
            "id": f"re_{intent.pk}",
            "type": "refund",
            "order": intent.subject,
            "amount_minor": intent.amount_minor,
            "currency": intent.currency,
            "status": "succeeded",
            "idempotency_key": intent.idempotency_key,
            "created": int(intent.created_at.timestamp()),
        }
        return {name: value for name, value in (found | more).items() if value is not ...}

    def deliver(
        self,
        content: Any,
        *,
        delivery_id: str | None = None,
        secret: str = SECRET,
        at: datetime | None = None,
        name: str | None = None,
        **headers: str,
    ) -> Any:
        """Signs `content` (bytes, or what `data` of an event is) and posts it. The answer."""
        body = content if isinstance(content, bytes) else event(content)
        return self.post(body, sign(body, delivery_id or new_id(), at or times.now(), secret) | headers, name=name)

    def post(self, body: bytes, headers: dict[str, str], *, name: str | None = None) -> Any:
        path = f"/api/v1/webhooks/{name or self.downstream.name}"
        return self.client.generic("POST", path, body, content_type="application/json", headers=headers)

    def tell(self, intent: Intent, *, at: datetime | None = None, **entry: Any) -> Delivery:
        """Delivers one entry about the intent, whatever comes of it. The delivery as it is then."""
        delivery_id = new_id()
        answered = self.deliver(self.entry(intent, **entry), delivery_id=delivery_id, at=at)
        assert answered.status_code == 204, answered.content
        return Delivery.objects.get(delivery_id=delivery_id)

    # --- intents

    def submitted(self, **more: Any) -> Intent:
        """Its attempt is open."""
        intent = make_intent(self.kind, **more)
        submit(intent)
        return self.read(intent)

    def unknown(self, **more: Any) -> Intent:
        """Its one attempt brought no answer."""
        intent = make_intent(self.kind, **more)
        return answer(submit(intent), Result.NO_ANSWER)

    # --- time, and what there is

    def later(self, seconds: float) -> None:
        self.clock.ahead += timedelta(seconds=seconds)

    def sweep(self) -> None:
        sweep.sweep()

    def read(self, intent: Intent) -> Intent:
        return Intent.objects.get(pk=intent.pk)

    def sound(self, intent: Intent, status: Status) -> Intent:
        """The intent as it is now; in this status, with a history that holds together."""
        found = self.read(intent)
        assert found.status == status
        assert history.faults(found) == []
        return found

    def checks(self, intent: Intent) -> list[str]:
        return [str(verdict) for verdict in Check.objects.filter(intent=intent).values_list("verdict", flat=True)]

    def reasons(self, intent: Intent) -> list[str]:
        """Why the intent's case is open; nothing when there is none."""
        review = Review.objects.filter(intent=intent, closed_at__isnull=True).first()
        return [] if review is None else sorted(reason.code for reason in review.reasons.all())

    def outcomes(self) -> Counter[str]:
        return Counter(Delivery.objects.values_list("outcome", flat=True))


def make_hooks(clock: Clock, **downstream: Any) -> Hooks:
    found = make_downstream(
        config=EXAMPLE.target.config,
        secret_env="LANDED_TEST_SECRET",
        webhook_secret_env="LANDED_TEST_WEBHOOKS",
        lag_s=60,
        **downstream,
    )
    return Hooks(found, make_kind(found, check_schedule=[30], absence_spacing_s=0), clock)


class Says:
    """A connector that hears the same from every delivery."""

    def __init__(self, notice: Notice) -> None:
        self.notice = notice

    def hear(self, *_: Any, **__: Any) -> Notice:
        return self.notice


def new_id() -> str:
    return f"evt_{next(_numbers)}"


def event(data: Any, *, topic: str = "refund.updated") -> bytes:
    return json.dumps({"type": topic, "data": data}, separators=(",", ":")).encode()


def sign(body: bytes, delivery_id: str, at: datetime, secret: str = SECRET) -> dict[str, str]:
    return {
        "webhook-id": delivery_id,
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign(delivery_id, at, body.decode()),
    }
