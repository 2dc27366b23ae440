"""Cases for the pages, made without a network."""

from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client

from actions import times, transitions
from actions.models import Intent, Kind
from actions.statuses import Actor, Status
from reconciliation.models import Choice, ReasonCode, Review
from reconciliation.reviews import opening
from tests import factories


def make_unknown(kind: Kind | None = None, **columns: Any) -> Intent:
    intent = factories.make_intent(kind, to=Status.SUBMITTED, first_maybe_sent_at=times.now(), **columns)
    return transitions.apply(
        intent.pk,
        expected=Status.SUBMITTED,
        to=Status.UNKNOWN,
        actor=Actor.WORKER,
        actor_id="worker:test/1",
        reason="closed",
    )


def make_case(kind: Kind | None = None, **columns: Any) -> Review:
    """An open review of an intent whose outcome is unknown."""
    intent = make_unknown(kind, **columns)
    with transaction.atomic():
        return opening.open_for_outcome(intent, ReasonCode.HIGH_VALUE, now=times.now(), recommendation=Choice.CONFIRM)


def make_held(kind: Kind | None = None, **columns: Any) -> Review:
    """An open review of an intent that needs approval."""
    intent = factories.make_intent(kind, to=Status.HELD, hold_reasons="approval", **columns)
    return Review.objects.get(intent=intent, closed_at__isnull=True)


def log_in(role: str = "reviewer", **columns: Any) -> tuple[Client, User]:
    person = factories.make_person(role, **columns)
    client = Client()
    client.force_login(person)
    return client, person


def text_of(response: Any) -> str:
    return response.content.decode()


def hidden_of(response: Any) -> dict[str, str]:
    """What the decision form would send back unseen."""
    seen = response.context["seen"]
    return {"seen_version": str(seen.version), "seen_verdict": seen.verdict, "seen_digest": seen.digest}
