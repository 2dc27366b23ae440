"""What goes wild: many intents of one agent, and a downstream that is away."""

from datetime import datetime
from typing import Any

from django.test import Client

from actions import breakers, times, transitions
from actions.connectors.http_json.example import EXAMPLE
from actions.models import Agent, Downstream, Intent, Kind, Line, SettledBy
from actions.statuses import Actor, Status
from reconciliation import incidents
from reconciliation.models import Incident, ReasonCode, Review
from reconciliation.reviews import opening
from tests import factories
from tests.pages.cases import text_of


def sendable(**columns: Any) -> Kind:
    """A kind whose requests can be built; nobody answers them."""
    config = {name: part for name, part in EXAMPLE.target.config.items() if name != "headers"}
    return factories.make_kind(factories.make_downstream(config=config), **columns)


def recorded(kind: Kind, agent: Agent, **columns: Any) -> Intent:
    """Due to be sent."""
    return factories.make_intent(kind, agent, next_attempt_at=times.now(), **columns)


def unknown(kind: Kind, agent: Agent | None = None, **columns: Any) -> Intent:
    intent = factories.make_intent(kind, agent, to=Status.SUBMITTED, first_maybe_sent_at=times.now(), **columns)
    return _moved(intent, Status.UNKNOWN, reason="closed")


def landed(kind: Kind, agent: Agent | None = None, *, settled: int | None = None, **columns: Any) -> Intent:
    intent = factories.make_intent(kind, agent, to=Status.SUBMITTED, first_maybe_sent_at=times.now(), **columns)
    amount = intent.amount_minor if settled is None else settled
    return _moved(
        intent,
        Status.CONFIRMED,
        reason="confirmed_by_answer",
        settled_by=SettledBy.ANSWER,
        settled_amount_minor=amount,
        settled_currency=intent.currency,
    )


def _moved(intent: Intent, to: Status, **columns: Any) -> Intent:
    return transitions.apply(
        intent.pk, expected=Status.SUBMITTED, to=to, actor=Actor.WORKER, actor_id="worker:test/1", **columns
    )


def outage(downstream: Downstream, now: datetime) -> Incident:
    """Its breaker opens, as after enough sendings without an answer."""
    for _ in range(downstream.breaker_after):
        breakers.unanswered(downstream, Line.SENDING, now=now)
    return Incident.objects.get(downstream=downstream, closed_at=None)


def waiting_cases(kind: Kind, many: int, **columns: Any) -> list[Review]:
    """Cases that are there only because nothing can be found out; gathered under the open incident."""
    now = times.now()
    reviews = [
        opening.open_for_outcome(unknown(kind, **columns), ReasonCode.STILL_UNKNOWN, now=now) for _ in range(many)
    ]
    incidents.sweep(now)
    return reviews


def main_of(response: Any) -> str:
    """What the page itself says."""
    return text_of(response).split("<main", 1)[1].split("</main>", 1)[0]


def confirm(client: Client, preview: Any, **given: str) -> Any:
    """Presses the button of a preview, as the browser would."""
    context = preview.context
    rows = [one.row.value for one in context["can"]]
    return client.post(
        "/bulk/",
        {"action": context["action"].value, "step": "confirm", "row": rows, "back": context["back"]} | given,
    )
