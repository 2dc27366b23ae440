"""Short steps that the tests of limits share."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from actions.errors import LimitExceeded
from actions.models import Agent, Intent, Kind
from tests.core.steps import propose
from tests.factories import make_agent, make_kind

EUR = {"EUR": {}, "JPY": {}, "KWD": {}}


def make_limited(kind: Kind | None = None, *, limits: dict[str, Any]) -> tuple[Agent, Kind]:
    """An agent with these limits and a kind that asks nobody."""
    kind = kind or make_kind(limits=EUR, look_alike_policy="allow")
    return make_agent(kind, limits=limits), kind


def amounts(currency: str = "EUR", **limits: int) -> dict[str, Any]:
    """`per_action`, `per_day` and `per_subject_day` in one currency, minor units."""
    return {"amounts": {currency: limits}}


def ask(agent: Agent, kind: Kind, amount: str, subject: str = "", **fields: Any) -> Intent:
    """Proposes on a subject of its own."""
    subject = subject or f"order-{Intent.objects.count()}"
    return propose(agent, kind, amount=amount, subject=subject, **fields).intent


def refused(agent: Agent, kind: Kind, amount: str, subject: str = "", **fields: Any) -> LimitExceeded:
    """Proposes, is refused by a limit, and nothing is recorded."""
    before = Intent.objects.count()
    with pytest.raises(LimitExceeded) as caught:
        ask(agent, kind, amount, subject, **fields)
    assert Intent.objects.count() == before
    return caught.value


def made(intent: Intent, *, ago: timedelta) -> datetime:
    """As if it had been proposed so long ago; when that is."""
    at = intent.created_at - ago
    from tests.flushing import without_triggers

    with without_triggers():
        Intent.objects.filter(pk=intent.pk).update(created_at=at)
    return at
