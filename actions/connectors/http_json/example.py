"""What the connector shows of itself: the sandbox's payments API. The contract test runs on it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from standardwebhooks import Webhook

from actions.connectors.base import Example, ExampleWebhook, Target, Wanted

_REFUND = (
    '{"id":"re_1","order":"order-4812","amount_minor":5000,"currency":"EUR","status":"succeeded",'
    '"idempotency_key":"key-1","created":1795000000,"type":"refund"}'
)


def sign(body: bytes, at: datetime, secret: str) -> Mapping[str, str]:
    """What a sender of Standard Webhooks sends along."""
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(int(at.timestamp())),
        "webhook-signature": Webhook(secret).sign("evt_1", at, body.decode()),
    }


_OTHER = _REFUND.replace("re_1", "re_0").replace("key-1", "key-0")
EXAMPLE = Example(
    target=Target(
        name="payments",
        base_url="https://payments.example",
        secret="sk_test_123",  # noqa: S106  made up
        dedupes=True,
        config={
            "headers": {"Authorization": "Bearer {secret}"},
            "send": {
                "method": "POST",
                "path": "/v1/refunds",
                "key_header": "Idempotency-Key",
                "body": "{order: subject, amount_minor: amount_minor, currency: currency, "
                "metadata: {intent: intent_id}}",
            },
            "answer": {
                "id": "id",
                "amount_minor": "amount_minor",
                "currency": "currency",
                "subject": "order",
                "key": "idempotency_key",
                "status": "status",
                "confirmed": ["succeeded"],
                "pending": ["pending"],
                "failed": ["failed"],
            },
            "known_errors": [
                {
                    "status": 400,
                    "when": "error.code == 'already_refunded'",
                    "result": "refused",
                    "reason": "effect_exists_elsewhere",
                },
                {
                    "status": 422,
                    "when": "error.code == 'key_reused'",
                    "result": "no_answer",
                    "reason": "key_used_otherwise",
                },
            ],
            "look_up": {
                "key": {
                    "path": "/v1/ledger",
                    "query": {"idempotency_key": "idempotency_key", "limit": "'100'"},
                },
                "subject": {"path": "/v1/ledger", "query": {"order": "subject", "limit": "'100'"}},
                "recent": {"path": "/v1/ledger", "query": {"since": "since", "limit": "'100'"}},
                "items": "data",
                "more": "has_more",
                "cursor": "data[-1].id",
                "cursor_param": "starting_after",
                "entry": {
                    "id": "id",
                    "role": "type",
                    "roles": {"refund": "effect", "reversal": "reversal", "fee": "fee"},
                    "status": "status",
                    "states": {"succeeded": "final", "pending": "pending", "failed": "failed"},
                    "key": "idempotency_key",
                    "subject": "order",
                    "amount_minor": "amount_minor",
                    "currency": "currency",
                    "booked_at": "created",
                },
            },
            "webhook": {"topic": "type", "at": "timestamp", "entries": "data"},
        },
    ),
    wanted=Wanted(
        intent_id="0193-intent",
        idempotency_key="key-1",
        kind="refund",
        subject="order-4812",
        amount_minor=5000,
        amount="50.00",
        currency="EUR",
    ),
    confirmed=_REFUND,
    accepted=_REFUND.replace("succeeded", "pending"),
    declined=_REFUND.replace("succeeded", "failed"),
    other_amount=_REFUND.replace("5000", "5001"),
    pages=(
        f'{{"data":[{_OTHER}],"has_more":true}}',
        f'{{"data":[{_REFUND}],"has_more":false}}',
    ),
    webhook=ExampleWebhook(
        body=f'{{"type":"refund.created","timestamp":"2026-11-18T11:06:40Z","data":{_REFUND}}}',
        secret="whsec_bWFkZSB1cCBmb3IgdGVzdHM=",  # noqa: S106  made up
        sign=sign,
    ),
)
