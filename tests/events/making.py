"""Endpoints, and one pass of delivering."""

from typing import Any

from actions.models import Agent, Endpoint, EventDelivery
from actions.notifying import running, secrets


def make_endpoint(agent: Agent, url: str, **columns: Any) -> tuple[Endpoint, str]:
    """An endpoint that hears of what happens from now on, and its secret."""
    endpoint = Endpoint(agent=agent, url=url, **columns)
    secret = secrets.begin(endpoint)
    endpoint.save()
    return endpoint, secret


def deliver() -> int:
    return running.deliver_due(budget_s=5)


def only() -> EventDelivery:
    return EventDelivery.objects.get()
