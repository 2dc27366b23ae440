"""What is asked once for many: who, why, until when."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.models import User
from django.db.models import QuerySet

from reconciliation.entering import PressedForm
from reconciliation.models import DecisionReason, WaitsFor
from reconciliation.reviews import commenting, people
from reconciliation.reviews.bulk.judging import Asked, Bulk

if TYPE_CHECKING:
    _Choice = forms.ModelChoiceField[User]
else:
    _Choice = forms.ModelChoiceField

_HOURS: Mapping[str, str] = {"1": "1 hour", "4": "4 hours", "24": "24 hours", "72": "3 days"}
_LONGEST: Mapping[str, str] = {"24": "24 hours", "72": "3 days", "168": "7 days"}
_FIELDS: Mapping[Bulk, tuple[str, ...]] = {
    Bulk.CHECK: ("note",),
    Bulk.ASSIGN: ("to", "note"),
    Bulk.WAIT: ("waits_for", "reference", "until", "longest", "note"),
    Bulk.CANCEL: ("note",),
    Bulk.REJECT: ("reason", "note"),
}
_NEEDS_NOTE = (Bulk.ASSIGN, Bulk.CANCEL)
# Those that speak for not sending it.
_REASONS = (DecisionReason.NOT_JUSTIFIED, DecisionReason.SUSPECTED_FRAUD, DecisionReason.OTHER)


def deciders() -> QuerySet[User]:
    """Whoever may decide cases."""
    return people.deciders().order_by("first_name", "username")


class _Person(_Choice):
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.get_full_name() or obj.get_username())


class BulkForm(PressedForm):
    """The fields of one action."""

    to = _Person(
        User.objects.none(), label="To", empty_label="Choose a person", error_messages={"required": "Say to whom."}
    )
    waits_for = forms.ChoiceField(label="Waits for", choices=WaitsFor.choices)
    reference = forms.CharField(label="Reference", required=False, max_length=200)
    until = forms.ChoiceField(label="Comes back in", choices=[*_HOURS.items()], initial="24")
    longest = forms.ChoiceField(label="At the longest", choices=[*_LONGEST.items()], initial="72")
    reason = forms.ChoiceField(
        label="Reason",
        choices=[("", "Choose a reason"), *((one.value, one.label) for one in _REASONS)],
        error_messages={"required": "Choose a reason."},
    )
    note = forms.CharField(
        label="Note",
        max_length=commenting.MAX,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Say why: colleagues will ask."},
    )

    def __init__(self, action: Bulk, data: Any = None) -> None:
        super().__init__(data)
        for name in set(self.fields) - set(_FIELDS[action]):
            del self.fields[name]
        self.fields["note"].required = action in _NEEDS_NOTE
        if action is Bulk.ASSIGN:
            self.fields["to"].queryset = deciders()  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cleaned_data
        if found.get("reason") == DecisionReason.OTHER and not found.get("note", "").strip():
            self.add_error("note", "The reason “other” needs a note.")
        return found

    def asked(self, now: datetime) -> Asked:
        """For `bulk.run`; of a form that is valid."""
        found = self.cleaned_data
        return Asked(
            note=found.get("note", ""),
            to=found.get("to"),
            reason=DecisionReason(found["reason"]) if "reason" in found else None,
            waits_for=WaitsFor(found["waits_for"]) if "waits_for" in found else None,
            reference=found.get("reference", ""),
            until=now + timedelta(hours=int(found["until"])) if "until" in found else None,
            longest=now + timedelta(hours=int(found["longest"])) if "longest" in found else None,
        )
