"""How a settled intent is corrected, as people fill it in at the desk or in the admin."""

from typing import Any

from django import forms
from django.db.models import Q

from actions import money, visible
from actions.models import Intent
from actions.statuses import Status
from reconciliation.entering import PressedForm
from reconciliation.models import DecisionReason, LedgerEntry
from reconciliation.reviews import overriding, relinking
from reconciliation.reviews.differences import MAX_NOTE

_WORDS = {
    (Status.CONFIRMED, Status.FAILED): "It did not happen",
    (Status.CONFIRMED, Status.CONFIRMED): "It happened, and another ledger entry settles it",
    (Status.FAILED, Status.CONFIRMED): "It happened",
}


def entries_of(intent: Intent) -> list[LedgerEntry]:
    """The ledger entries that were seen and could be this intent's, newest first."""
    by_key = LedgerEntry.objects.filter(downstream=intent.downstream, key=intent.idempotency_key)
    by_subject = LedgerEntry.objects.filter(downstream=intent.downstream, subject=intent.subject)
    tied = LedgerEntry.objects.filter(matches__intent=intent)
    found = {entry.pk for some in (by_key, by_subject, tied) for entry in some[:50]}
    return list(LedgerEntry.objects.filter(Q(pk__in=found)).order_by("-id")[:50])


class CorrectionForm(PressedForm):
    """Cleaned: `what()` to be proposed, and `seen_version`."""

    to = forms.ChoiceField(label="What is true", widget=forms.RadioSelect)
    seen_version = forms.IntegerField(widget=forms.HiddenInput)
    seen_digest = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)
    reason = forms.ChoiceField(choices=[("", "Choose a reason"), *DecisionReason.choices])
    note = forms.CharField(
        max_length=MAX_NOTE,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What you know and from where; the second person decides on it.",
    )
    entry = forms.TypedChoiceField(
        label="The ledger entry that shows it",
        required=False,
        coerce=int,
        empty_value=None,
        help_text="If it happened, and there is one.",
    )
    settled_amount = forms.CharField(
        label="Amount that was settled",
        required=False,
        max_length=20,
        help_text="If it happened, and no entry shows it. Such as 50.00; empty: as it was intended.",
    )
    settled_currency = forms.CharField(label="Currency", required=False, max_length=3)
    linked = forms.CharField(
        label="The entry that settles it now belongs to",
        required=False,
        max_length=255,
        help_text="The id or idempotency key of another intent, which that entry settles then.",
    )
    outside = forms.CharField(
        label="Where else you have it from",
        required=False,
        max_length=MAX_NOTE,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Source and reference; needed when the ledger can't be looked into.",
    )

    def __init__(self, intent: Intent, data: Any = None) -> None:
        self.intent = intent
        status = Status(intent.status)
        choices = [(to.value, words) for (now, to), words in _WORDS.items() if now is status]
        super().__init__(data, initial=_initial(intent, choices))
        for name, found in (("to", choices), ("entry", [("", "none"), *_named(intent)])):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = found
        if relinking.settling(intent) is None:
            del self.fields["linked"]

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        found["settled_amount_minor"], found["linked_id"] = None, None
        if "linked" not in self.fields and str(self.data.get(self.add_prefix("linked")) or "").strip():
            # Never passed over in silence: whoever wrote it expects it to be done.
            raise forms.ValidationError("No entry settles this intent, so none can be tied to another.")
        if found.get("to") == Status.CONFIRMED:
            self._clean_amount(found)
        if (text := (found.get("linked") or "").strip()) and found.get("to"):
            to = relinking.named(self.intent.downstream_id, text)
            found["linked_id"] = to.pk if to else None
            if to is None:
                self.add_error("linked", "No intent of this downstream has that id or idempotency key.")
        return found

    def _clean_amount(self, found: dict[str, Any]) -> None:
        text, currency = found.get("settled_amount") or "", found.get("settled_currency") or ""
        if bool(text) != bool(currency):
            self.add_error("settled_currency", "An amount and its currency, or neither.")
        if text and currency:
            try:
                found["settled_amount_minor"] = money.to_minor(text, currency)
            except money.BadAmount as wrong:
                self.add_error("settled_amount", str(wrong))

    def what(self) -> overriding.Correction:
        found = self.cleaned_data
        confirmed = found["to"] == Status.CONFIRMED
        return overriding.Correction(
            to=Status(found["to"]),
            reason=found["reason"],
            note=found["note"],
            settled_amount_minor=found["settled_amount_minor"],
            settled_currency=found["settled_currency"] if found["settled_amount_minor"] is not None else "",
            entry_id=found["entry"] if confirmed else None,
            linked_id=found["linked_id"],
            outside=found["outside"],
        )

    def seen(self) -> overriding.Seen:
        return overriding.Seen(self.cleaned_data["seen_version"], self.cleaned_data["seen_digest"])


def _initial(intent: Intent, choices: list[tuple[str, str]]) -> dict[str, Any]:
    seen = overriding.seen(intent)
    return {
        "to": choices[0][0] if len(choices) == 1 else None,
        "seen_version": seen.version,
        "seen_digest": seen.digest,
    }


def _named(intent: Intent) -> list[tuple[int, str]]:
    return [(entry.pk, _name(entry)) for entry in entries_of(intent)]


def _name(entry: LedgerEntry) -> str:
    amount = money.describe(entry.amount_minor, entry.currency)
    return f"{visible.plain(entry.entry_id)}: {amount}, {entry.get_role_display()}, {entry.state}"


class AgreeForm(forms.Form):
    outside = forms.CharField(
        label="Where else you have it from",
        required=False,
        max_length=MAX_NOTE,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Source and reference; needed when the ledger can't be looked into.",
    )


class RefuseForm(forms.Form):
    note = forms.CharField(max_length=MAX_NOTE, label="Why not", widget=forms.Textarea(attrs={"rows": 3}))
