"""What people fill in at the desk."""

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from actions import money
from actions.models import Intent
from reconciliation.entering import PressedForm
from reconciliation.models import Choice, DecisionReason, LedgerEntry, Verdict
from reconciliation.reviews import commenting
from reconciliation.reviews.deciding import Seen

MAX_TEXT = commenting.MAX


def _text(*, rows: int, **attributes: str) -> forms.Textarea:
    # hx-preserve: what somebody is typing survives a look-up that renews the facts around it.
    return forms.Textarea(attrs={"rows": rows, "maxlength": MAX_TEXT, "hx-preserve": "true", **attributes})


class DecisionForm(PressedForm):
    """A decision, with what the person had seen when making it. `choice` is the button that was pressed."""

    choice = forms.ChoiceField(choices=Choice, error_messages={"required": "Press one of the buttons below."})
    reason = forms.ChoiceField(
        choices=[("", "Choose a reason"), *DecisionReason.choices],
        error_messages={"required": "Choose a reason."},
    )
    note = forms.CharField(required=False, max_length=MAX_TEXT, widget=_text(rows=2))
    entry = forms.IntegerField(required=False)
    settled_amount = forms.CharField(required=False, max_length=24)
    settled_currency = forms.CharField(required=False, max_length=3)
    outside = forms.CharField(required=False, max_length=MAX_TEXT, widget=_text(rows=2))
    waive_guard = forms.BooleanField(required=False)

    seen_version = forms.IntegerField(min_value=0, widget=forms.HiddenInput)
    seen_verdict = forms.ChoiceField(required=False, choices=[("", "—"), *Verdict.choices], widget=forms.HiddenInput)
    seen_digest = forms.CharField(required=False, max_length=64, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, intent: Intent | None = None, entry: LedgerEntry | None = None) -> None:
        """`entry`: the only one that can settle it; then it is chosen from the start."""
        super().__init__(data, initial=_settled(intent, entry))
        self.fields["reason"].widget.attrs["hx-preserve"] = "true"

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cleaned_data
        found["settled_amount_minor"] = None
        written = found.get("settled_amount", "").strip()
        if written and found.get("choice") == Choice.CONFIRM:
            try:
                found["settled_amount_minor"] = money.to_minor(written, found.get("settled_currency", ""))
            except money.BadAmount as wrong:
                raise ValidationError({"settled_amount": str(wrong)}) from None
        return found

    def ballot(self) -> dict[str, Any]:
        """The arguments of `deciding.decide`: only a confirmation names an entry and an amount."""
        found = self.cleaned_data
        choice, minor = Choice(found["choice"]), found["settled_amount_minor"]
        return {
            "choice": choice,
            "reason": DecisionReason(found["reason"]),
            "note": found["note"],
            "outside": found["outside"],
            "seen": Seen(found["seen_version"], found["seen_verdict"], found["seen_digest"]),
            "entry_id": found["entry"] if choice is Choice.CONFIRM else None,
            "settled_amount_minor": minor,
            "settled_currency": "" if minor is None else found["settled_currency"],
            "waive_guard": found["waive_guard"] and choice is Choice.APPROVE,
        }


def _settled(intent: Intent | None, entry: LedgerEntry | None) -> dict[str, Any]:
    """What a confirmation would say was settled: as the one entry was booked, else as it was intended."""
    if intent is None or intent.amount_minor is None:
        return {"entry": entry.pk if entry else None}
    minor, currency = intent.amount_minor, intent.currency
    if entry is not None and entry.settled_amount_minor is not None:
        minor, currency = entry.settled_amount_minor, entry.settled_currency or entry.currency
    elif entry is not None and entry.amount_minor is not None:
        minor, currency = entry.amount_minor, entry.currency
    try:
        text = money.to_text(minor, currency)
    except money.BadAmount:
        text = ""
    return {"entry": entry.pk if entry else None, "settled_amount": text, "settled_currency": currency}


class CommentForm(forms.Form):
    text = forms.CharField(max_length=MAX_TEXT, error_messages={"required": "Write something first."})

    def __init__(self, *args: Any, number: int = 0, **kwargs: Any) -> None:
        """`number` of comments so far: a stored comment makes a fresh field, anything else keeps what is typed."""
        super().__init__(*args, **kwargs)
        self.fields["text"].widget = _text(rows=2, id=f"id_comment_{number}")
