"""What people fill in at the desk."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from actions import money
from actions.models import Agent, Kind
from actions.statuses import Status
from reconciliation.models import Choice, DecisionReason, LedgerEntry, Verdict
from reconciliation.reviews import commenting
from reconciliation.reviews.deciding import Seen

MAX_TEXT = commenting.MAX


def _text(*, rows: int, **attributes: str) -> forms.Textarea:
    # hx-preserve: what somebody is typing survives a look-up that renews the facts around it.
    return forms.Textarea(attrs={"rows": rows, "maxlength": MAX_TEXT, "hx-preserve": "true", **attributes})


class DecisionForm(forms.Form):
    """A decision, with what the person had seen when making it. `choice` is the button that was pressed."""

    choice = forms.ChoiceField(choices=Choice, error_messages={"required": "Press one of the buttons below."})
    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *DecisionReason.choices],
        error_messages={"required": "Choose a reason."},
    )
    note = forms.CharField(required=False, max_length=MAX_TEXT, widget=_text(rows=2))
    entry = forms.TypedChoiceField(required=False, coerce=int, empty_value=None)
    settled_amount = forms.CharField(required=False, max_length=24)
    settled_currency = forms.CharField(required=False, max_length=3)
    outside = forms.CharField(required=False, max_length=MAX_TEXT, widget=_text(rows=2))
    waive_guard = forms.BooleanField(required=False)

    seen_version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    seen_verdict = forms.ChoiceField(required=False, choices=[("", "—"), *Verdict.choices], widget=forms.HiddenInput)
    seen_digest = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(self, *args: Any, entries: Sequence[LedgerEntry] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        chosen = self.fields["entry"]
        assert isinstance(chosen, forms.TypedChoiceField)
        chosen.choices = [("", "None of them"), *((entry.pk, entry.entry_id) for entry in entries)]
        self.fields["reason"].widget.attrs["hx-preserve"] = "true"
        self.fields["settled_amount"].widget.attrs |= {"inputmode": "decimal", "autocomplete": "off"}

    @property
    def seen(self) -> Seen:
        found = self.cleaned_data
        return Seen(version=found["seen_version"], verdict=found["seen_verdict"], digest=found["seen_digest"])

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cleaned_data
        found["settled_amount_minor"] = None
        written, currency = found.get("settled_amount", "").strip(), found.get("settled_currency", "")
        if written and found.get("choice") in (Choice.CONFIRM, Choice.CORRECT):
            try:
                found["settled_amount_minor"] = money.to_minor(written, currency)
            except money.BadAmount as wrong:
                raise ValidationError({"settled_amount": str(wrong)}) from None
        return found


class CommentForm(forms.Form):
    text = forms.CharField(max_length=MAX_TEXT, error_messages={"required": "Write something first."})

    def __init__(self, *args: Any, number: int = 0, **kwargs: Any) -> None:
        """`number` of comments so far: a stored comment makes a fresh field, anything else keeps what is typed."""
        super().__init__(*args, **kwargs)
        self.fields["text"].widget = _text(rows=2, id=f"id_comment_{number}")


class IntentFilter(forms.Form):
    """The list's filters. What is not understood filters nothing."""

    q = forms.CharField(required=False, max_length=255)
    status = forms.ChoiceField(required=False, choices=[("", "Any status"), *Status.choices])
    kind = forms.ModelChoiceField(
        Kind.objects.all(), required=False, to_field_name="name", empty_label="Any kind", blank=True
    )
    agent = forms.ModelChoiceField(
        Agent.objects.all(), required=False, to_field_name="name", empty_label="Any agent", blank=True
    )
    disputed = forms.BooleanField(required=False)
