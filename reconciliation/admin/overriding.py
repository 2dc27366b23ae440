"""The form and the facts of an override; `reconciliation.reviews.overriding` holds the rules."""

from typing import Any

from django import forms
from django.db.models import Q

from actions import money, visible
from actions.models import Intent
from actions.statuses import Status
from reconciliation.admin import columns
from reconciliation.models import DecisionReason, LedgerEntry

OTHER = {Status.CONFIRMED.value: Status.FAILED, Status.FAILED.value: Status.CONFIRMED}


def entries_of(intent: Intent) -> list[LedgerEntry]:
    """The ledger entries that were seen and could be this intent's, newest first."""
    by_key = LedgerEntry.objects.filter(downstream=intent.downstream, key=intent.idempotency_key)
    by_subject = LedgerEntry.objects.filter(downstream=intent.downstream, subject=intent.subject)
    tied = LedgerEntry.objects.filter(matches__intent=intent)
    found = {entry.pk for some in (by_key, by_subject, tied) for entry in some[:50]}
    return list(LedgerEntry.objects.filter(Q(pk__in=found)).order_by("-id")[:50])


class OverrideForm(forms.Form):
    """Cleaned: reason, note, settled_amount_minor, settled_currency, entry_id, to, seen_version."""

    to = forms.ChoiceField(choices=[(s.value, s.label) for s in OTHER.values()], widget=forms.HiddenInput)
    seen_version = forms.IntegerField(widget=forms.HiddenInput)
    reason = forms.ChoiceField(choices=[("", "Choose"), *DecisionReason.choices])
    note = forms.CharField(
        max_length=10_000,
        widget=forms.Textarea(attrs={"rows": 5, "cols": 80}),
        help_text="What you know and from where; the second person decides on it.",
    )
    settled_amount = forms.CharField(required=False, max_length=20, help_text="Such as 50.00.")
    settled_currency = forms.CharField(required=False, max_length=3)
    entry = forms.TypedChoiceField(
        required=False,
        coerce=int,
        empty_value=None,
        help_text="The ledger entry that shows it, if there is one.",
    )

    def __init__(self, intent: Intent, data: Any = None) -> None:
        to = OTHER[intent.status]
        super().__init__(
            data,
            initial={
                "to": to.value,
                "seen_version": intent.version,
                "settled_amount": intent.amount or "",
                "settled_currency": intent.currency,
            },
        )
        entry = self.fields["entry"]
        assert isinstance(entry, forms.ChoiceField)
        entry.choices = [("", "none"), *((found.pk, _name(found)) for found in entries_of(intent))]
        if to is Status.FAILED:
            for name in ("settled_amount", "settled_currency", "entry"):
                del self.fields[name]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        found["entry_id"] = found.get("entry")
        found["settled_amount_minor"], found["settled_currency"] = None, found.get("settled_currency") or ""
        text = found.get("settled_amount") or ""
        if bool(text) != bool(found["settled_currency"]):
            self.add_error("settled_currency", "An amount and its currency, or neither.")
        elif text:
            try:
                found["settled_amount_minor"] = money.to_minor(text, found["settled_currency"])
            except money.BadAmount as wrong:
                self.add_error("settled_amount", str(wrong))
        return found


def _name(entry: LedgerEntry) -> str:
    return f"{visible.plain(entry.entry_id)}: {columns.asked(entry)}, {entry.get_role_display()}, {entry.state}"


class RefuseForm(forms.Form):
    note = forms.CharField(max_length=10_000, label="Why not", widget=forms.Textarea(attrs={"rows": 3, "cols": 80}))
