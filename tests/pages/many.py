"""Many open cases at once: rows as opening leaves them, written in bulk."""

import copy
from datetime import timedelta
from typing import Any
from uuid import UUID

import uuid_utils
from django.contrib.auth.models import User

from actions import times
from actions.models import Intent, Kind
from reconciliation.list_forms import QueueFilter
from reconciliation.models import ReasonCode, Review, ReviewReason
from reconciliation.views.queue import View
from tests.pages.cases import make_unknown


def make_intents(count: int, kind: Kind | None = None, *, prefix: str = "many", **columns: Any) -> list[Intent]:
    """Copies of one intent whose outcome is unknown, on orders of their own: `many-0`, `many-1`, …"""
    first = make_unknown(kind, subject=f"{prefix}-first", **columns)
    found = []
    for number in range(count):
        one = copy.copy(first)
        one.pk, one.guard_key = UUID(str(uuid_utils.uuid7())), None
        one.subject = one.family = f"{prefix}-{number}"
        one.idempotency_key = str(uuid_utils.uuid7())
        found.append(one)
    return Intent.objects.bulk_create(found)


def make_cases(count: int, kind: Kind | None = None, *, prefix: str = "many", **columns: Any) -> list[Review]:
    now = times.now()
    intents = make_intents(count, kind, prefix=prefix)
    reviews = [
        Review(
            **{
                "intent": intent,
                "purpose": "outcome",
                "amount_minor": intent.amount_minor,
                "currency": intent.currency,
                "stake": 100 * (number % 3),
                "opened_at": now,
                "due_at": now + timedelta(minutes=number % 7),
                "customer_waiting": number % 5 == 0,
                **columns,
            }
        )
        for number, intent in enumerate(intents)
    ]
    made = Review.objects.bulk_create(reviews)
    ReviewReason.objects.bulk_create(ReviewReason(review=one, code=ReasonCode.HIGH_VALUE, at=now) for one in made)
    return made


def view(person: User, *, tab: str = "all", order: str = "due", after: str = "", **filters: str) -> View:
    return View(person, tab, order, after, QueueFilter(filters), [])
