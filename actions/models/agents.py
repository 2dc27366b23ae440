"""Who proposes: agents and the tokens that they show."""

from typing import Any

from django.core.exceptions import ValidationError
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models import Q
from simple_history.models import HistoricalRecords

from actions import limit_rules

from .policy import SLUG, Kind


def valid_agent_limits(value: Any) -> None:
    if found := [f"{path}: {sentence}" if path else sentence for path, sentence in limit_rules.faults(value)]:
        raise ValidationError(found)


class Agent(models.Model):
    """A program that proposes."""

    name = models.CharField(max_length=64, unique=True, validators=[SLUG])
    title = models.CharField(max_length=100, blank=True)
    group = models.CharField(
        max_length=64,
        blank=True,
        validators=[SLUG],
        help_text="Agents of one group read each other's intents.",
    )
    kinds = models.ManyToManyField(Kind, blank=True, related_name="agents", help_text="What it may propose.")
    built_in = models.BooleanField(default=False, editable=False)
    rate_per_minute = models.PositiveIntegerField(default=120, validators=[MinValueValidator(1)])
    limits = models.JSONField(
        default=dict,
        blank=True,
        validators=[valid_agent_limits],
        help_text="How much it may propose, amounts in minor units. See docs/limits.md.",
    )
    tripped_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="When its velocity paused it last; what it proposed before that doesn't pause it a second time.",
    )
    paused = models.BooleanField(default=False)
    pause_reason = models.CharField(max_length=200, blank=True)

    history = HistoricalRecords(m2m_fields=[kinds])

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class Scope(models.TextChoices):
    PROPOSE = "propose", "propose"
    REPORT = "report", "report"
    READ = "read", "read"
    EVIDENCE = "evidence", "evidence"


class Token(models.Model):
    """A credential of an agent. Only its digest is stored."""

    agent = models.ForeignKey(Agent, on_delete=models.PROTECT, related_name="tokens")
    label = models.CharField(max_length=100, blank=True)
    prefix = models.CharField(max_length=16, editable=False, help_text="Its first characters, to tell it by.")
    digest = models.CharField(max_length=64, unique=True, editable=False)
    may_propose = models.BooleanField(default=True)
    may_report = models.BooleanField(default=False)
    may_read = models.BooleanField(default=True)
    may_give_evidence = models.BooleanField(default=False)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)

    history = HistoricalRecords(excluded_fields=["digest", "last_used_at"])

    class Meta:
        ordering = ["agent", "-created_at"]
        constraints = [
            # Whoever tells what the books say must not be who gains by it.
            models.CheckConstraint(
                name="token_evidence_stands_alone",
                condition=Q(may_give_evidence=False) | Q(may_propose=False, may_report=False),
                violation_error_message="The scope evidence is never granted together with propose or report.",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.agent_id}:{self.prefix}…"

    @property
    def scopes(self) -> frozenset[str]:
        granted = {
            Scope.PROPOSE: self.may_propose,
            Scope.REPORT: self.may_report,
            Scope.READ: self.may_read,
            Scope.EVIDENCE: self.may_give_evidence,
        }
        return frozenset(scope.value for scope, yes in granted.items() if yes)


class Usage(models.Model):
    """How much an agent asked for: in the minute that began at `since`, and in the one before. For rate limits."""

    agent = models.ForeignKey(Agent, on_delete=models.CASCADE, related_name="usage")
    bucket = models.CharField(max_length=10, help_text="What is counted together.")
    since = models.DateTimeField()
    count = models.PositiveIntegerField(default=0)
    count_before = models.PositiveIntegerField(default=0)

    class Meta:
        ordering = ["agent", "bucket"]
        verbose_name_plural = "usage"
        constraints = [models.UniqueConstraint(name="usage_once", fields=["agent", "bucket"])]

    def __str__(self) -> str:
        return f"{self.agent_id} {self.bucket}: {self.count}"
