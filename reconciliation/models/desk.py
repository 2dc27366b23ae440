"""What belongs to the people at the desk: files they add, notes they have not sent yet, how they like it, what they
are told by e-mail."""

from django.conf import settings
from django.db import models
from django.db.models import Q

from actions.models import Intent
from reconciliation.words import AfterDeciding, NoticeKind, Theme

from .reviews import Incident, Review


class Attachment(models.Model):
    """A file that somebody added to a case, as its bytes. History keeps the digest; the bytes can be erased."""

    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="attachments")
    intent = models.ForeignKey(Intent, null=True, on_delete=models.PROTECT, related_name="attachments")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="attachments")
    name = models.CharField(max_length=255)
    media_type = models.CharField(max_length=100)
    size = models.PositiveIntegerField(help_text="Bytes.")
    digest = models.CharField(max_length=64, help_text="SHA-256 of the bytes, in hex.")
    content = models.BinaryField(null=True)
    at = models.DateTimeField()
    erased_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        constraints = [
            models.CheckConstraint(
                name="attachment_content_until_erased",
                condition=Q(erased_at__isnull=True, content__isnull=False)
                | Q(erased_at__isnull=False, content__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return f"attachment {self.pk}"


class Draft(models.Model):
    """A note that somebody has begun in a case. It is theirs alone and ends when it is sent."""

    review = models.ForeignKey(Review, on_delete=models.CASCADE, related_name="drafts")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="drafts")
    text = models.TextField()
    at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(name="draft_one_each", fields=["review", "person"])]

    def __str__(self) -> str:
        return f"draft {self.pk}"


class Preferences(models.Model):
    """How one person likes the desk."""

    person = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="preferences")
    after_deciding = models.CharField(max_length=8, choices=AfterDeciding, default=AfterDeciding.STAY)
    time_zone = models.CharField(max_length=64, blank=True, help_text="IANA name; empty: the browser's own.")
    locale = models.CharField(max_length=16, blank=True, help_text="For amounts, such as de_DE; empty: en.")
    theme = models.CharField(max_length=8, choices=Theme, default=Theme.SYSTEM)
    shortcuts = models.BooleanField(default=True)
    notices = models.BooleanField(default=True, help_text="E-mail about cases.")

    class Meta:
        verbose_name_plural = "preferences"
        constraints = [
            models.CheckConstraint(
                name="preferences_valid",
                condition=Q(after_deciding__in=AfterDeciding.values) & Q(theme__in=Theme.values),
            )
        ]

    def __str__(self) -> str:
        return f"preferences of {self.person_id}"


class Notice(models.Model):
    """One e-mail to be sent: written down with what it is about, sent by the clock, off every request's path."""

    kind = models.CharField(max_length=10, choices=NoticeKind)
    once = models.CharField(max_length=80, unique=True, help_text="What it is about: told once.")
    review = models.ForeignKey(Review, null=True, on_delete=models.PROTECT, related_name="notices")
    incident = models.ForeignKey(Incident, null=True, on_delete=models.PROTECT, related_name="notices")
    to = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        on_delete=models.CASCADE,
        related_name="notices_to",
        help_text="Empty: everybody whom it concerns.",
    )
    created_at = models.DateTimeField()
    next_try_at = models.DateTimeField(null=True, help_text="Empty: sent, or given up.")
    tries = models.PositiveSmallIntegerField(default=0)
    sent_at = models.DateTimeField(null=True)
    problem = models.CharField(max_length=200, blank=True, help_text="Of the newest try.")

    class Meta:
        ordering = ["-id"]
        constraints = [models.CheckConstraint(name="notice_kind_valid", condition=Q(kind__in=NoticeKind.values))]
        indexes = [
            models.Index(name="notice_due", fields=["next_try_at"], condition=Q(next_try_at__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.once}"
