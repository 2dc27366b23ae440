"""A kind whose downstream is Stripe: localstripe, behind a proxy that follows orders."""

from dataclasses import dataclass
from typing import Any, cast

from actions.models import Intent
from config.demo import stripe
from tests import factories
from tests.flow.world import Clock, World
from tests.sandbox.sandbox_client import Sandbox
from tests.stripe.proxy import Proxy

CONFIG = {"version": "2026-06-24.dahlia"}


@dataclass
class StripeWorld(World):
    """`charge` is a payment of 200.00 EUR that nothing was refunded of yet."""

    proxy: Proxy
    stripe: stripe.Client
    charge: str

    def refund(self, subject: str, amount: str = "50.00", currency: str = "EUR", **params: Any) -> Intent:
        return self.propose(subject, amount, currency, params=params or {"charge": self.charge})

    def refunds(self, **payment: str) -> list[dict[str, Any]]:
        """What localstripe has, newest first."""
        found: list[dict[str, Any]] = self.stripe.get("refunds", limit=1000, **(payment or {"charge": self.charge}))[
            "data"
        ]
        return found

    def posts(self, intent: Intent) -> int:
        return sum(intent.idempotency_key in seen.headers.values() for seen in self.proxy.posts())

    def booked(self, intent: Intent) -> list[dict[str, Any]]:
        return [one for one in self.refunds() if one["metadata"].get("landed_key") == intent.idempotency_key]


def make_world(proxy: Proxy, client: stripe.Client, clock: Clock) -> StripeWorld:
    downstream = factories.make_downstream(
        connector="stripe",
        base_url=proxy.url,
        config=CONFIG,
        secret_env="LANDED_TEST_SECRET",
        look_up="key",
        deadline_ms=800,
        connect_timeout_ms=500,
        lease_margin_ms=1_000,
        lag_s=1,
    )
    limits = {"EUR": {}, "USD": {}, "JPY": {}, "ISK": {}}
    kind = factories.make_kind(downstream, check_schedule=[1], absence_spacing_s=0, review_after_s=600, limits=limits)
    charge = client.charge(20_000, "eur", source=client.card())
    return StripeWorld(cast(Sandbox, None), downstream, kind, clock, proxy, client, charge)
