"""Webhooks that arrived: each delivery once, kept before it is answered."""

import json
from typing import Any

from django.db import models
from django.db.models import Q

from actions.models import Downstream, Evidence


class DeliveryOutcome(models.TextChoices):
    """What became of a delivery. The later in this list, the more followed from it."""

    UNREADABLE = "unreadable", "genuine, but it can't be read"
    NOTHING_OF_OURS = "nothing_of_ours", "no intent is behind it"
    NOTHING_SAID = "nothing_said", "it names an intent and shows no entry"
    KNOWN = "known", "it says what is known already"
    LOOK_ASKED = "look_asked", "the books are looked into"
    JUDGED = "judged", "its content was judged"


class Delivery(models.Model):
    """One webhook of a downstream. Its content is fixed; what became of it is written once."""

    downstream = models.ForeignKey(Downstream, on_delete=models.PROTECT, related_name="deliveries")
    delivery_id = models.CharField(
        max_length=255, help_text="The sender's own id; without one that can be kept: the digest of the body."
    )
    topic = models.CharField(max_length=100, blank=True)
    received_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True, help_text="When the sender signed it.")
    about = models.TextField(
        default="{}",
        help_text="Canonical JSON: the keys, ids and subjects that it names, and our rows of its entries.",
    )
    evidence = models.ForeignKey(Evidence, on_delete=models.PROTECT, related_name="deliveries")
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    applied_at = models.DateTimeField(null=True, help_text="When it was applied, or given up.")
    outcome = models.CharField(max_length=16, choices=DeliveryOutcome, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "deliveries"
        constraints = [
            models.UniqueConstraint(name="delivery_once", fields=["downstream", "delivery_id"]),
            models.CheckConstraint(
                name="delivery_waits_or_is_done",
                condition=Q(next_try_at__isnull=False, outcome="", applied_at__isnull=True)
                | Q(next_try_at__isnull=True, outcome__in=DeliveryOutcome.values, applied_at__isnull=False),
            ),
        ]
        indexes = [
            models.Index(name="delivery_due", fields=["next_try_at"], condition=Q(next_try_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.downstream_id}:{self.delivery_id}"

    @property
    def about_data(self) -> dict[str, Any]:
        found = json.loads(self.about)
        assert isinstance(found, dict)
        return found
