"""The outbox: what changed for an intent, in the transaction that changed it."""

from typing import Final

from django.db import models
from django.db.models import Q

from .agents import Agent
from .intents import Intent


class EventType(models.TextChoices):
    RECORDED = "intent.recorded", "recorded, or proven not sent"
    HELD = "intent.held", "held: a person has to approve it"
    SUBMITTED = "intent.submitted", "submitted: it may have been sent"
    UNKNOWN = "intent.unknown", "unknown: it may have happened"
    SETTLED = "intent.settled", "settled: confirmed, failed or cancelled"
    DISPUTED = "intent.disputed", "new facts contradict how it was settled"
    CORRECTED = "intent.corrected", "how it was settled was corrected"
    REVIEW_OPENED = "review.opened", "a person is asked"
    REVIEW_DECIDED = "review.decided", "a person decided"
    REVIEW_CLOSED = "review.closed", "the case ended without a decision"


# What webhooks are sent for. The feed has all of them.
TOLD: Final = (
    EventType.HELD,
    EventType.UNKNOWN,
    EventType.SETTLED,
    EventType.DISPUTED,
    EventType.CORRECTED,
    EventType.REVIEW_OPENED,
    EventType.REVIEW_DECIDED,
)


class Event(models.Model):
    """One thing that its agent may want to know. Never changed, but for `position`, which is given once."""

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="events")
    # Its index is the one of the feed, below.
    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="events", db_index=False)
    type = models.CharField(max_length=20, choices=EventType)
    sequence = models.PositiveIntegerField(null=True, help_text="Of the transition; empty: it is none.")
    intent_status = models.CharField(max_length=10, blank=True, help_text="The intent's, with this event.")
    at = models.DateTimeField()
    position = models.BigIntegerField(
        null=True, unique=True, help_text="Its place in the order of commits; `actions.positions` gives it."
    )

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(name="event_type_valid", condition=Q(type__in=EventType.values))]
        indexes = [
            models.Index(name="event_feed", fields=["agent", "position"]),
            models.Index(name="event_without_position", fields=["id"], condition=Q(position__isnull=True)),
        ]

    def __str__(self) -> str:
        return f"{self.type} {self.intent_id}"
