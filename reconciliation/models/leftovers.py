"""What is left to do beside deciding: money that ended up elsewhere than intended, and books to be looked through."""

from django.db import models
from django.db.models import Q

from actions.models import Downstream, Evidence, Intent
from reconciliation.words import LeftToDo

from .books import LedgerEntry
from .reviews import Decision


class Difference(models.Model):
    """What really moved is not what was intended, and somebody has established that: listed until it is resolved.

    The amount, in minor units, is what is to come back, or still to be sent; none where two currencies can't be
    compared.
    """

    intent = models.ForeignKey(Intent, on_delete=models.PROTECT, related_name="differences")
    entry = models.ForeignKey(LedgerEntry, null=True, on_delete=models.PROTECT, related_name="differences")
    decision = models.ForeignKey(Decision, null=True, on_delete=models.PROTECT, related_name="differences")
    what = models.CharField(max_length=10, choices=LeftToDo)
    amount_minor = models.BigIntegerField(null=True)
    currency = models.CharField(max_length=3, blank=True)
    opened_at = models.DateTimeField()
    resolved_at = models.DateTimeField(null=True)
    resolved_by = models.CharField(max_length=100, blank=True, help_text="person:3.")
    note = models.ForeignKey(Evidence, null=True, on_delete=models.PROTECT, related_name="resolves")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(name="difference_what_valid", condition=Q(what__in=LeftToDo.values)),
            models.CheckConstraint(
                name="difference_amount_positive", condition=Q(amount_minor__isnull=True) | Q(amount_minor__gt=0)
            ),
            models.CheckConstraint(
                name="difference_resolved_says_by_whom",
                condition=Q(resolved_at__isnull=True, resolved_by="")
                | (Q(resolved_at__isnull=False) & ~Q(resolved_by="")),
            ),
        ]
        indexes = [
            models.Index(name="difference_open", fields=["opened_at", "id"], condition=Q(resolved_at__isnull=True)),
            models.Index(
                name="difference_resolved", fields=["-resolved_at", "-id"], condition=Q(resolved_at__isnull=False)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.intent_id}: {self.what} {self.amount_minor} {self.currency}"


class LookBack(models.Model):
    """Where the reverse look into one downstream's books stands: which entries does no intent explain?"""

    downstream = models.OneToOneField(
        Downstream, primary_key=True, on_delete=models.CASCADE, related_name="look_back"
    )
    next_at = models.DateTimeField()
    through = models.DateTimeField(null=True, help_text="Everything booked before was looked through.")
    finished_at = models.DateTimeField(null=True, help_text="When the last complete one ended.")
    problem = models.CharField(max_length=300, blank=True, help_text="Why the last one was not complete.")
    # The way through the books that is not at its end yet, in as many looks as it takes.
    began_at = models.DateTimeField(null=True, help_text="When this way through began.")
    question = models.CharField(max_length=64, blank=True, help_text="Digest of what is asked, and of whom.")
    cursor = models.TextField(blank=True, help_text="Where the next look goes on; empty: at the beginning.")
    mark = models.TextField(
        blank=True, help_text="A cursor that was passed: once more, and the pages go in a circle."
    )
    pages = models.PositiveIntegerField(default=0, help_text="So many were read on this way.")
    unread = models.PositiveIntegerField(default=0, help_text="So many rows on them could not be read.")
    stuck = models.PositiveIntegerField(default=0, help_text="So many looks in a row got no page from there.")

    class Meta:
        ordering = ["downstream"]

    def __str__(self) -> str:
        return f"{self.downstream_id}: {self.through}"
