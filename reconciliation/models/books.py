"""What the books say: entries, their ties to intents, and the looks into the books."""

import json
from typing import Any

from django.db import models
from django.db.models import Q

from actions.models import Chained, Downstream, Evidence, Intent
from reconciliation.words import EntryRole, EntryState, MatchRole, Verdict


class LedgerEntry(models.Model):
    """One row of a book. What is final or failed never becomes pending again."""

    downstream = models.ForeignKey(Downstream, on_delete=models.PROTECT, related_name="entries")
    book = models.CharField(max_length=64, default="api")
    entry_id = models.CharField(max_length=255, help_text="The book's own id; without one: digest and occurrence.")
    role = models.CharField(max_length=8, choices=EntryRole)
    state = models.CharField(max_length=8, choices=EntryState)
    key = models.CharField(max_length=255, blank=True)
    subject = models.CharField(max_length=200, blank=True)
    amount_minor = models.BigIntegerField(null=True, help_text="As it was asked for.")
    currency = models.CharField(max_length=3, blank=True)
    settled_amount_minor = models.BigIntegerField(null=True, help_text="As it was booked, where that differs.")
    settled_currency = models.CharField(max_length=3, blank=True)
    booked_at = models.DateTimeField(null=True)
    source = models.CharField(max_length=200, blank=True)
    evidence = models.ForeignKey(Evidence, null=True, on_delete=models.PROTECT, related_name="entries")
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    explain_at = models.DateTimeField(
        null=True, help_text="When it is looked at which intent explains it; empty: one does, or a case is about it."
    )

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "ledger entries"
        constraints = [
            models.UniqueConstraint(name="entry_once", fields=["downstream", "book", "entry_id"]),
            models.CheckConstraint(name="entry_role_valid", condition=Q(role__in=EntryRole.values)),
            models.CheckConstraint(name="entry_state_valid", condition=Q(state__in=EntryState.values)),
        ]
        indexes = [
            # Over all: SQLite can't tell from a parameter that a key is not empty, and would read the whole book.
            models.Index(name="entry_by_key", fields=["downstream", "key"]),
            models.Index(name="entry_by_subject", fields=["downstream", "subject"]),
            # What no intent explains yet: cost follows what is open, not what was ever booked.
            models.Index(name="entry_to_explain", fields=["explain_at"], condition=Q(explain_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.downstream_id}:{self.entry_id}"


class Match(models.Model):
    """The tie between an entry and an intent. It can be released, never edited."""

    entry = models.ForeignKey(LedgerEntry, on_delete=models.PROTECT, related_name="matches")
    intent = models.ForeignKey(Intent, null=True, on_delete=models.PROTECT, related_name="matches")
    role = models.CharField(max_length=10, choices=MatchRole)
    entry_state = models.CharField(max_length=8, choices=EntryState, help_text="The entry's state when judged.")
    amount_minor = models.BigIntegerField(null=True, help_text="What the entry said when it was tied.")
    currency = models.CharField(max_length=3, blank=True)
    by = models.CharField(max_length=100, help_text="checker, or person:3.")
    at = models.DateTimeField()
    released_at = models.DateTimeField(null=True)
    released_by = models.CharField(max_length=100, blank=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = "matches"
        constraints = [
            # One entry settles one intent, and one intent is settled by one entry.
            models.UniqueConstraint(
                name="match_one_active_per_entry", fields=["entry"], condition=Q(released_at__isnull=True)
            ),
            models.UniqueConstraint(
                name="match_one_settling_per_intent",
                fields=["intent"],
                condition=Q(released_at__isnull=True, role=MatchRole.SETTLES),
            ),
            models.CheckConstraint(
                name="match_intent_unless_not_ours",
                condition=Q(intent__isnull=False) | Q(role=MatchRole.NOT_OURS),
            ),
            models.CheckConstraint(name="match_role_valid", condition=Q(role__in=MatchRole.values)),
        ]
        indexes = [
            models.Index(
                name="match_duplicates",
                fields=["entry"],
                condition=Q(released_at__isnull=True, role=MatchRole.DUPLICATE),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.entry_id}→{self.intent_id} {self.role}"


class Check(Chained):
    """One look into a book about one intent. Stores what was seen, whatever followed from it."""

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="checks")
    book = models.CharField(max_length=64, default="api")
    by = models.CharField(max_length=100, help_text="checker:host/12 or person:3.")
    manual = models.BooleanField(default=False, help_text="Asked for by a person: it doesn't count as an absence.")
    started_at = models.DateTimeField()
    fence = models.PositiveIntegerField()
    verdict = models.CharField(max_length=12, choices=Verdict)
    counts_as_absence = models.BooleanField(default=False)
    grounds = models.TextField(help_text="Canonical JSON: what the verdict rests on; no personal text.")
    evidence = models.TextField(default="[]", help_text="Canonical JSON: [[id, digest], …].")
    facts_digest = models.CharField(max_length=64, help_text="Over the entries as seen: equal facts, equal digest.")

    CHAINED = (
        "intent_id",
        "book",
        "by",
        "manual",
        "started_at",
        "fence",
        "verdict",
        "counts_as_absence",
        "grounds",
        "evidence",
        "facts_digest",
    )

    class Meta:
        ordering = ["intent", "position"]
        constraints = [
            models.UniqueConstraint(name="check_position_once", fields=["intent", "position"]),
            models.CheckConstraint(name="check_verdict_valid", condition=Q(verdict__in=Verdict.values)),
            models.CheckConstraint(
                name="check_manual_never_counts", condition=Q(manual=False) | Q(counts_as_absence=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.intent_id}:{self.verdict}"

    @property
    def grounds_data(self) -> dict[str, Any]:
        found = json.loads(self.grounds)
        assert isinstance(found, dict)
        return found
