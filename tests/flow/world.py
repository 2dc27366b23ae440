"""The main path by hand: a kind whose downstream is the sandbox, and one step of each part at a time."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F

from actions import dispatch, services, sweep
from actions.connectors.http_json.example import EXAMPLE
from actions.models import Downstream, Intent, Kind
from reconciliation import checks
from reconciliation import sweep as reconciliation_sweep
from reconciliation.models import Check, Review
from tests import factories
from tests.sandbox.sandbox_client import Sandbox


@dataclass
class Clock:
    """Stands in for `actions.times.now`: the real one, and `ahead` of it."""

    real: Callable[[], datetime]
    ahead: timedelta = timedelta(0)

    def __call__(self) -> datetime:
        return self.real() + self.ahead


@dataclass
class World:
    """`kind` goes to the sandbox; every method is one step of the product, on its real database and network."""

    sandbox: Sandbox
    downstream: Downstream
    kind: Kind
    clock: Clock

    def propose(self, subject: str, amount: str = "50.00", currency: str = "EUR", **more: Any) -> Intent:
        return services.record_intent(
            kind=self.kind.name,
            subject=subject,
            amount=amount,
            currency=currency,
            **({"executor": "landed"} | more),
        )

    def send(self) -> int:
        """What a worker does until nothing is due."""
        return dispatch.run(budget_s=10)

    def check(self, intent: Intent) -> Check:
        """The intent's next check, due now whatever its schedule says."""
        self.make_due(intent)
        (claimed,) = [one for one in checks.claim(limit=50) if one.intent_id == intent.pk]
        return checks.act(claimed, checks.look(claimed))

    def make_due(self, intent: Intent) -> None:
        Intent.objects.filter(pk=intent.pk).update(next_check_at=F("created_at"))

    def sweep(self) -> int:
        return sweep.sweep().changed + reconciliation_sweep.sweep().changed

    def later(self, seconds: float) -> None:
        """Moves the database's clock, as the product reads it, on by so many seconds. The sandbox's stays."""
        self.clock.ahead += timedelta(seconds=seconds)

    def read(self, intent: Intent) -> Intent:
        return Intent.objects.get(pk=intent.pk)

    def review(self, intent: Intent) -> Review:
        return Review.objects.get(intent=intent, closed_at__isnull=True)

    def posts(self, intent: Intent) -> int:
        return len(self.sandbox.requests(intent.subject))

    def booked(self, intent: Intent) -> list[dict[str, Any]]:
        return self.sandbox.booked(intent.subject)


def make_world(sandbox: Sandbox, clock: Clock, **kind: Any) -> World:
    downstream = factories.make_downstream(
        base_url=sandbox.url,
        config=EXAMPLE.target.config,
        secret_env="LANDED_TEST_SECRET",
        deadline_ms=1_500,
        connect_timeout_ms=500,
        lease_margin_ms=1_000,
        lag_s=1,
    )
    policy: dict[str, Any] = {"check_schedule": [1], "absence_spacing_s": 0, "review_after_s": 600}
    return World(sandbox, downstream, factories.make_kind(downstream, **(policy | kind)), clock)
