"""A note on an intent: stored as evidence beside it. The intent itself is not touched."""

from datetime import timedelta

from django import forms
from django.contrib.auth.models import User
from django.db import transaction

from actions import evidence, history, times
from actions.locking import for_change
from actions.models import Evidence, EvidenceKind, Intent, Observed
from actions.redaction import redact


class NoteForm(forms.Form):
    note = forms.CharField(
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80}),
        help_text="For colleagues; no agent sees it. It can't be edited afterwards.",
    )


def store_note(intent: Intent, *, person: User, text: str) -> Evidence:
    """Stores the note. The same words from the same person within a minute are a double click: one note."""
    with transaction.atomic():
        # Two clicks wait for each other here.
        for_change(Intent).get(pk=intent.pk)
        now = times.now()
        source = f"person:{person.pk}"
        again = Evidence.objects.filter(
            intent=intent,
            kind=EvidenceKind.NOTE,
            source=source,
            text=redact(text),
            created_at__gt=now - timedelta(minutes=1),
        ).first()
        if again is not None:
            return again
        kept = evidence.store(intent_id=intent.pk, kind=EvidenceKind.NOTE, source=source, content=text, now=now)
        history.observe(intent.pk, Observed.NOTE, by=source, evidence=[kept], at=now)
        return kept
