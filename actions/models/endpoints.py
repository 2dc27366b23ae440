"""Where events are sent as webhooks, and what came of it."""

from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from .agents import Agent
from .events import TOLD, Event


def every_type() -> list[str]:
    return [kind.value for kind in TOLD]


class Endpoint(models.Model):
    """An address that hears of one agent's intents. Its secrets are derived (`actions.notifying.secrets`), not
    stored."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="endpoints")
    url = models.CharField("URL", max_length=500)
    types = models.JSONField(default=every_type, help_text="What it is told of.")
    active = models.BooleanField(default=True, help_text="While it is not, events wait for it, two days at most.")
    inactive_because = models.CharField(max_length=200, blank=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    secret_salt = models.CharField(max_length=32, editable=False)
    secret_version = models.PositiveIntegerField(default=1, editable=False)
    previous_until = models.DateTimeField(
        null=True, editable=False, help_text="Until when deliveries carry the previous secret's signature, too."
    )

    # Written by machines, again and again: no history.
    planned_to = models.BigIntegerField(default=0, editable=False, help_text="Position up to which it was planned.")
    failures = models.PositiveIntegerField(default=0, editable=False, help_text="In a row.")
    not_before = models.DateTimeField(null=True, editable=False, help_text="After failures: nothing is sent sooner.")

    history = HistoricalRecords(excluded_fields=["secret_salt", "planned_to", "failures", "not_before"])

    class Meta:
        ordering = ["agent", "id"]

    def __str__(self) -> str:
        return self.url


class DeliveryState(models.TextChoices):
    PENDING = "pending", "pending"
    DELIVERED = "delivered", "delivered"
    GIVEN_UP = "given_up", "given up"


class EventDelivery(models.Model):
    """One event for one endpoint, until it is taken or given up."""

    endpoint = models.ForeignKey(Endpoint, on_delete=models.PROTECT, related_name="deliveries", db_index=False)
    event = models.ForeignKey(Event, on_delete=models.PROTECT, related_name="deliveries")
    state = models.CharField(max_length=10, choices=DeliveryState, default=DeliveryState.PENDING)
    attempts = models.PositiveIntegerField(default=0, help_text="Since it was planned, or asked for again.")
    created_at = models.DateTimeField()
    next_at = models.DateTimeField(null=True, help_text="While it is pending: when it is tried next.")
    give_up_at = models.DateTimeField()
    lease_until = models.DateTimeField(null=True, help_text="Somebody is sending it, until then at most.")
    last_status = models.PositiveIntegerField(null=True, help_text="What the newest answer's HTTP status was.")
    last_error = models.CharField(max_length=200, blank=True)
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name = "webhook sent"
        verbose_name_plural = "webhooks sent"
        permissions = [("replay_eventdelivery", "Can send a webhook again")]
        constraints = [
            models.UniqueConstraint(name="event_delivery_once", fields=["endpoint", "event"]),
            models.CheckConstraint(
                name="event_delivery_state_valid",
                condition=Q(state=DeliveryState.PENDING, next_at__isnull=False)
                | Q(state__in=[DeliveryState.DELIVERED, DeliveryState.GIVEN_UP], next_at__isnull=True),
            ),
        ]
        # What is over costs nothing.
        indexes = [
            models.Index(
                name="event_delivery_due", fields=["endpoint", "next_at"], condition=Q(next_at__isnull=False)
            ),
            models.Index(name="event_delivery_too_old", fields=["give_up_at"], condition=Q(next_at__isnull=False)),
            models.Index(
                name="event_delivery_under_way",
                fields=["endpoint", "lease_until"],
                condition=Q(lease_until__isnull=False),
            ),
            models.Index(
                name="event_delivery_given_up", fields=["endpoint", "id"], condition=Q(state=DeliveryState.GIVEN_UP)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.endpoint_id} {self.event_id}: {self.state}"


class TryResult(models.TextChoices):
    DELIVERED = "delivered", "delivered"
    AGAIN = "again", "to be tried again"
    GIVEN_UP = "given_up", "given up"
    GONE = "gone", "gone: the endpoint is switched off"
    LOST = "lost", "whoever sent it never said how it ended"


class DeliveryTry(models.Model):
    """The log: one try at a delivery. Written once."""

    delivery = models.ForeignKey(EventDelivery, on_delete=models.PROTECT, related_name="tries")
    at = models.DateTimeField()
    result = models.CharField(max_length=10, choices=TryResult)
    http_status = models.PositiveIntegerField(null=True)
    error = models.CharField(max_length=200, blank=True)
    answer = models.TextField(blank=True, help_text="The beginning of what the receiver answered; untrusted.")
    took_ms = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "delivery tries"
        constraints = [models.CheckConstraint(name="try_result_valid", condition=Q(result__in=TryResult.values))]

    def __str__(self) -> str:
        return f"{self.delivery_id}: {self.result}"
