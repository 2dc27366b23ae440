"""What keeps things from being sent: stops that people place, and the breakers of downstreams that fall silent."""

from django.db import models
from django.db.models import Q

from .policy import Downstream, Kind


class StopScope(models.TextChoices):
    SUBJECT = "subject", "subject"
    PAYEE = "payee", "payee"
    CUSTOMER = "customer", "customer"


class Stop(models.Model):
    """Nothing that concerns this subject, payee or customer is sent before a person has looked. Lifted, never
    deleted."""

    scope = models.CharField(max_length=8, choices=StopScope)
    value = models.CharField(max_length=200, help_text="The subject, payee or customer, as it was written.")
    key = models.CharField(
        max_length=600, editable=False, help_text="What it is compared by; `actions.stops` makes it."
    )
    family = models.CharField(
        max_length=600, blank=True, editable=False, help_text="Of a subject, compared the same."
    )
    kind = models.ForeignKey(
        Kind, null=True, blank=True, on_delete=models.PROTECT, related_name="stops", help_text="Empty: every kind."
    )
    reason = models.CharField(max_length=200, help_text="For people; agents never see it.")
    placed_by = models.CharField(max_length=100, editable=False, help_text="person:3.")
    placed_at = models.DateTimeField(editable=False)
    lifted_by = models.CharField(max_length=100, blank=True, editable=False)
    lifted_at = models.DateTimeField(null=True, editable=False)
    erased_at = models.DateTimeField(
        null=True, editable=False, help_text="When whom it was about was erased; it was lifted before."
    )

    class Meta:
        ordering = ["-id"]
        permissions = [("place_stop", "Can place a stop"), ("lift_stop", "Can lift a stop")]
        constraints = [
            models.UniqueConstraint(
                name="stop_once_per_kind", fields=["scope", "key", "kind"], condition=Q(lifted_at__isnull=True)
            ),
            models.UniqueConstraint(
                name="stop_once_for_all_kinds",
                fields=["scope", "key"],
                condition=Q(lifted_at__isnull=True, kind__isnull=True),
            ),
            models.CheckConstraint(name="stop_scope_valid", condition=Q(scope__in=StopScope.values)),
            models.CheckConstraint(
                name="stop_lifted_says_by_whom",
                condition=Q(lifted_at__isnull=True, lifted_by="") | (Q(lifted_at__isnull=False) & ~Q(lifted_by="")),
            ),
        ]
        indexes = [
            models.Index(name="stop_by_key", fields=["scope", "key"], condition=Q(lifted_at__isnull=True)),
            models.Index(
                name="stop_by_family", fields=["family"], condition=Q(lifted_at__isnull=True) & ~Q(family="")
            ),
        ]

    def __str__(self) -> str:
        return f"{self.scope} {self.value}"


class Line(models.TextChoices):
    """What a breaker watches: the two things that we ask of a downstream."""

    SENDING = "sending", "sending"
    LOOKING = "looking", "looking into its books"


class Breaker(models.Model):
    """How many tries in a row a downstream left unanswered. Open, only probes are made."""

    downstream = models.ForeignKey(Downstream, on_delete=models.CASCADE, related_name="breakers")
    line = models.CharField(max_length=8, choices=Line)
    unanswered = models.PositiveIntegerField(default=0)
    opened_at = models.DateTimeField(null=True)
    probe_at = models.DateTimeField(null=True, help_text="While it is open: when the next one may be made.")
    probes = models.PositiveIntegerField(default=0, help_text="Since it opened.")

    class Meta:
        ordering = ["downstream", "line"]
        constraints = [
            models.UniqueConstraint(name="breaker_once", fields=["downstream", "line"]),
            models.CheckConstraint(name="breaker_line_valid", condition=Q(line__in=Line.values)),
            models.CheckConstraint(
                name="breaker_open_has_probe",
                condition=Q(opened_at__isnull=True, probe_at__isnull=True)
                | Q(opened_at__isnull=False, probe_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.downstream_id} {self.line}: {self.unanswered}"
