"""Refunds at Stripe: by charge or payment intent, told apart by the metadata that each of ours carries. Pure.

The payment is named by the intent's params, `charge` (`ch_…`, `py_…`) or `payment_intent` (`pi_…`); the subject stays
our own order. Documents named in this package are pages of Stripe's documentation; fields and codes are those of
Stripe's own library (stripe-python) at `request.VERSION`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from actions.connectors.base import Answer, By, Example, Fetch, Notice, Page, Target, Wanted
from actions.connectors.stripe import answer, ledger, looking, request, webhook
from actions.connectors.stripe.example import EXAMPLE
from actions.transport import Call, Reply


class Stripe:
    name = "stripe"

    @property
    def example(self) -> Example:
        return EXAMPLE

    def check_config(self, config: Mapping[str, Any]) -> list[str]:
        return request.check(config)

    def build(self, target: Target, wanted: Wanted) -> Call:
        return request.build(target, wanted)

    def read(self, target: Target, wanted: Wanted, reply: Reply) -> Answer:
        return answer.read(wanted, reply)

    def look_up(self, target: Target, wanted: Wanted, fetch: Fetch, *, by: By) -> Iterator[Page]:
        return ledger.look_up(target, wanted, fetch)

    def object_to(self, target: Target, wanted: Wanted, fetch: Fetch) -> str:
        return looking.object_to(target, wanted, fetch)

    def hear(
        self, target: Target, *, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime
    ) -> Notice:
        return webhook.hear(target, headers=headers, body=body, secrets=secrets, now=now)


CONNECTOR = Stripe()
