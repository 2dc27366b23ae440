"""What the connector shows of itself. The contract test runs on it."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from datetime import datetime

from actions.connectors.base import Example, ExampleLook, ExampleWebhook, Target, Wanted

_REFUND = (
    '{"id":"re_1","object":"refund","amount":5000,"balance_transaction":"txn_1","charge":"ch_1","created":1795000000,'
    '"currency":"eur","metadata":{"landed_intent":"0193-intent","landed_key":"key-1","landed_subject":"order-4812"},'
    '"payment_intent":"pi_1","reason":null,"status":"succeeded"}'
)
_OTHER = _REFUND.replace("re_1", "re_0").replace("key-1", "key-0")
_CHARGE = (
    '{"id":"ch_1","object":"charge","amount":20000,"amount_captured":20000,"amount_refunded":0,"captured":true,'
    '"currency":"eur","disputed":false,"payment_intent":"pi_1","refunded":false,"status":"succeeded"}'
)


def sign(body: bytes, at: datetime, secret: str) -> Mapping[str, str]:
    """What Stripe sends along."""
    time = str(int(at.timestamp()))
    signature = hmac.new(secret.encode(), f"{time}.".encode() + body, hashlib.sha256).hexdigest()
    return {"stripe-signature": f"t={time},v1={signature}"}


EXAMPLE = Example(
    target=Target(
        name="stripe",
        base_url="https://api.stripe.com",
        secret="sk_test_made_up",  # noqa: S106  made up
        dedupes=True,
        config={"version": "2026-06-24.dahlia", "reason": "requested_by_customer"},
    ),
    wanted=Wanted(
        intent_id="0193-intent",
        idempotency_key="key-1",
        kind="refund",
        subject="order-4812",
        amount_minor=5000,
        amount="50.00",
        currency="EUR",
        params={"charge": "ch_1"},
    ),
    confirmed=_REFUND,
    accepted=_REFUND.replace("succeeded", "pending"),
    declined=_REFUND.replace("succeeded", "failed"),
    other_amount=_REFUND.replace("5000,", "5001,"),
    pages=(
        f'{{"object":"list","url":"/v1/refunds","has_more":true,"data":[{_OTHER}]}}',
        f'{{"object":"list","url":"/v1/refunds","has_more":false,"data":[{_REFUND}]}}',
    ),
    look=ExampleLook(clear=(_CHARGE,), against=(_CHARGE.replace('"disputed":false', '"disputed":true'),)),
    webhook=ExampleWebhook(
        body='{"id":"evt_1","object":"event","api_version":"2026-06-24.dahlia","created":1795000000,'
        f'"data":{{"object":{_REFUND}}},"livemode":false,'
        '"request":{"id":"req_1","idempotency_key":"key-1"},"type":"refund.created"}',
        secret="whsec_made_up_for_tests",  # noqa: S106  made up
        sign=sign,
    ),
)
