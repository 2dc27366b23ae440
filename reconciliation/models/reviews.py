"""The queue: reviews, decisions, comments, incidents."""

from datetime import timedelta
from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from actions.models import Agent, Chained, Downstream, Evidence, Intent
from reconciliation.words import (
    Choice,
    ClosedHow,
    CommentKind,
    DecisionReason,
    IncidentKind,
    Purpose,
    ReasonCode,
    Verdict,
    WaitsFor,
)

from .books import LedgerEntry


class Review(models.Model):
    """One case in the queue, open until evidence or a person ends it."""

    intent = models.ForeignKey(Intent, null=True, on_delete=models.PROTECT, related_name="reviews")
    entry = models.ForeignKey(LedgerEntry, null=True, on_delete=models.PROTECT, related_name="reviews")
    purpose = models.CharField(max_length=8, choices=Purpose)
    recommendation = models.CharField(max_length=10, choices=Choice, blank=True)
    grounds = models.TextField(blank=True, help_text="In plain words, why it recommends that.")
    verdict = models.CharField(max_length=12, choices=Verdict, blank=True, help_text="Of the newest check.")
    facts_digest = models.CharField(max_length=64, blank=True, help_text="Of the newest check.")
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)

    holder = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.PROTECT,
        related_name="held_reviews",
        help_text="Who works on it, while the lease lasts.",
    )
    lease_until = models.DateTimeField(null=True)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.PROTECT,
        related_name="owned_reviews",
        help_text="Whose case it is, lease or no lease; empty: whoever comes first.",
    )
    stake = models.PositiveBigIntegerField(
        default=0, help_text="The amount in thousandths of the kind's review limit for its currency."
    )
    waits_for = models.CharField(max_length=10, choices=WaitsFor, blank=True)
    waits_reference = models.CharField(max_length=200, blank=True, help_text="What the other side calls it.")
    waits_until = models.DateTimeField(
        null=True, help_text="When it comes back to the queue; empty: it does not wait."
    )
    waits_longest = models.DateTimeField(null=True, help_text="Until when, at the longest, somebody agreed to wait.")
    # Its index holds open cases alone: SQLite would take one over all of them for "waits for no incident".
    incident = models.ForeignKey(
        "Incident",
        null=True,
        on_delete=models.PROTECT,
        related_name="reviews",
        db_index=False,
        help_text="Waits for its end.",
    )
    customer_waiting = models.BooleanField(default=False)
    opened_at = models.DateTimeField()
    due_at = models.DateTimeField()
    stood_still = models.DurationField(
        default=timedelta(0), help_text="For so long it waited for the end of incidents: it is due so much later."
    )
    stood_until = models.DateTimeField(null=True, help_text="Until when that is counted: none of it counts twice.")
    closed_at = models.DateTimeField(null=True)
    closed_how = models.CharField(max_length=20, choices=ClosedHow, blank=True)
    version = models.PositiveIntegerField(default=1)
    chain_length = models.PositiveIntegerField(default=0)
    chain_head = models.CharField(max_length=64, blank=True)

    # What the chain of a case about an entry begins with: set when it was opened, never changed.
    GENESIS: ClassVar[tuple[str, ...]] = ("id", "intent_id", "entry_id", "opened_at")

    class Meta:
        ordering = ["due_at", "id"]
        permissions = [
            ("decide_review", "Can decide reviews"),
            ("supervise_review", "Can decide what only supervisors may"),
            ("audit", "Can read everything and decide nothing"),
        ]
        constraints = [
            models.UniqueConstraint(
                name="review_one_open_per_intent", fields=["intent"], condition=Q(closed_at__isnull=True)
            ),
            models.UniqueConstraint(
                name="review_one_open_per_entry", fields=["entry"], condition=Q(closed_at__isnull=True)
            ),
            models.CheckConstraint(
                name="review_about_something", condition=Q(intent__isnull=False) | Q(entry__isnull=False)
            ),
            models.CheckConstraint(
                name="review_closed_says_how",
                condition=Q(closed_at__isnull=True, closed_how="")
                | Q(closed_at__isnull=False, closed_how__in=ClosedHow.values),
            ),
            models.CheckConstraint(name="review_purpose_valid", condition=Q(purpose__in=Purpose.values)),
            models.CheckConstraint(
                name="review_waits_for_someone",
                condition=Q(waits_until__isnull=True, waits_for="")
                | Q(waits_until__isnull=False, waits_for__in=WaitsFor.values),
            ),
        ]
        indexes = [
            models.Index(name="review_open_by_due", fields=["due_at", "id"], condition=Q(closed_at__isnull=True)),
            models.Index(name="review_open_by_owner", fields=["owner"], condition=Q(closed_at__isnull=True)),
            models.Index(name="review_open_by_incident", fields=["incident"], condition=Q(closed_at__isnull=True)),
            models.Index(name="review_open_by_holder", fields=["holder"], condition=Q(closed_at__isnull=True)),
            models.Index(
                name="review_open_as_shown",
                fields=["-customer_waiting", "due_at", "-stake", "id"],
                condition=Q(closed_at__isnull=True),
            ),
            models.Index(
                name="review_open_orphans",
                fields=["entry"],
                condition=Q(closed_at__isnull=True, purpose=Purpose.ENTRY),
            ),
        ]

    def __str__(self) -> str:
        return f"review {self.pk}"


class ReviewReason(models.Model):
    """Why the case is here. Reasons accumulate while it is open."""

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="reasons")
    code = models.CharField(max_length=20, choices=ReasonCode)
    at = models.DateTimeField()

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(name="review_reason_once", fields=["review", "code"]),
            models.CheckConstraint(name="review_reason_valid", condition=Q(code__in=ReasonCode.values)),
        ]

    def __str__(self) -> str:
        return self.code


class Decision(Chained):
    """What a person decided in a review, and what became of it (rows that speak of an earlier one: `about`)."""

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="decisions")
    intent = models.ForeignKey(Intent, null=True, on_delete=models.PROTECT, related_name="decisions")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="decisions"
    )
    choice = models.CharField(max_length=10, choices=Choice)
    reason = models.CharField(max_length=20, choices=DecisionReason, blank=True)
    about = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="followed_by")
    recommended = models.CharField(max_length=10, choices=Choice, blank=True)
    note = models.ForeignKey(Evidence, null=True, on_delete=models.PROTECT, related_name="noted_in")
    evidence = models.TextField(default="[]", help_text="Canonical JSON: [[id, digest], …].")
    entry = models.ForeignKey(LedgerEntry, null=True, on_delete=models.PROTECT, related_name="decisions")
    settled_amount_minor = models.BigIntegerField(null=True)
    settled_currency = models.CharField(max_length=3, blank=True)
    seen_version = models.PositiveIntegerField(help_text="The intent's version that the person saw.")
    seen_verdict = models.CharField(max_length=12, choices=Verdict, blank=True)
    seen_digest = models.CharField(max_length=64, blank=True)
    payload_digest = models.CharField(max_length=64, blank=True)
    takes_effect_at = models.DateTimeField(null=True)
    guard_waived = models.BooleanField(default=False)
    linked = models.ForeignKey(
        Intent,
        null=True,
        on_delete=models.PROTECT,
        related_name="named_by",
        help_text="In a case about an entry: the intent that the person names.",
    )

    CHAINED_IF_SET = ("linked_id",)
    CHAINED = (
        "review_id",
        "intent_id",
        "person_id",
        "choice",
        "reason",
        "about_id",
        "recommended",
        "note_id",
        "evidence",
        "entry_id",
        "settled_amount_minor",
        "settled_currency",
        "seen_version",
        "seen_verdict",
        "seen_digest",
        "payload_digest",
        "takes_effect_at",
        "guard_waived",
    )

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                name="decision_position_once",
                fields=["intent", "position"],
                condition=Q(intent__isnull=False),
            ),
            models.UniqueConstraint(
                name="decision_position_once_orphan",
                fields=["review", "position"],
                condition=Q(intent__isnull=True),
            ),
            # An earlier row is undone, voided or put into effect once.
            models.UniqueConstraint(name="decision_followed_once", fields=["about"]),
            models.CheckConstraint(name="decision_choice_valid", condition=Q(choice__in=Choice.values)),
        ]
        indexes = [
            models.Index(name="decision_at", fields=["at"]),
            models.Index(
                name="decision_takes_effect",
                fields=["takes_effect_at"],
                condition=Q(takes_effect_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.choice} by {self.person_id}"


class Comment(Chained):
    """What a person said, or did with the case itself, or a machine in nobody's name. For colleagues only; agents
    never see it."""

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="comments")
    intent = models.ForeignKey(Intent, null=True, on_delete=models.PROTECT, related_name="comments")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, null=True, on_delete=models.PROTECT, related_name="comments")
    by = models.CharField(max_length=20, blank=True, help_text="Which machine, where no person did: clock, checker.")
    text = models.ForeignKey(Evidence, on_delete=models.PROTECT, related_name="comment_in")
    text_digest = models.CharField(max_length=64)
    kind = models.CharField(max_length=10, choices=CommentKind, blank=True)
    to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.PROTECT,
        related_name="named_in_comments",
        help_text="To whom it was handed, or came back.",
    )
    attachment = models.ForeignKey(
        "Attachment", null=True, on_delete=models.PROTECT, related_name="comments", help_text="What was added."
    )

    CHAINED = ("review_id", "intent_id", "person_id", "text_id", "text_digest")
    CHAINED_IF_SET = ("kind", "to_id", "attachment_id", "by")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                name="comment_position_once", fields=["intent", "position"], condition=Q(intent__isnull=False)
            ),
            models.UniqueConstraint(
                name="comment_position_once_orphan",
                fields=["review", "position"],
                condition=Q(intent__isnull=True),
            ),
            models.CheckConstraint(
                name="comment_by_person_or_machine",
                condition=Q(person__isnull=False, by="") | (Q(person__isnull=True) & ~Q(by="")),
            ),
            models.CheckConstraint(name="comment_kind_valid", condition=Q(kind="") | Q(kind__in=CommentKind.values)),
        ]

    def __str__(self) -> str:
        return f"comment {self.pk}"


class Incident(models.Model):
    """Something that explains many cases at once."""

    kind = models.CharField(max_length=8, choices=IncidentKind)
    downstream = models.ForeignKey(Downstream, null=True, on_delete=models.PROTECT, related_name="incidents")
    agent = models.ForeignKey(Agent, null=True, on_delete=models.PROTECT, related_name="incidents")
    reason = models.CharField(max_length=40)
    opened_at = models.DateTimeField()
    closed_at = models.DateTimeField(null=True)
    rechecked_at = models.DateTimeField(null=True, help_text="When everything it kept back was due to be looked at.")

    class Meta:
        ordering = ["-opened_at"]
        constraints = [
            models.UniqueConstraint(
                name="incident_one_open_per_downstream",
                fields=["kind", "downstream"],
                condition=Q(closed_at__isnull=True, downstream__isnull=False),
            ),
            models.UniqueConstraint(
                name="incident_one_open_per_agent",
                fields=["kind", "agent"],
                condition=Q(closed_at__isnull=True, agent__isnull=False),
            ),
            models.CheckConstraint(name="incident_kind_valid", condition=Q(kind__in=IncidentKind.values)),
            models.CheckConstraint(
                name="incident_about_something",
                condition=Q(downstream__isnull=False) | Q(agent__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} since {self.opened_at:%Y-%m-%d %H:%M}"
