"""What people fill in to handle a case short of deciding it."""

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django import forms
from django.contrib.auth.models import User
from django.core.exceptions import ValidationError

from actions.errors import Invalid
from reconciliation.entering import PressedForm
from reconciliation.models import WaitsFor
from reconciliation.reviews import commenting, people, waiting

_LATER = [
    ("3600", "in 1 hour"),
    ("14400", "in 4 hours"),
    ("86400", "in 1 day"),
    ("172800", "in 2 days"),
    ("604800", "in 1 week"),
    ("at", "at the time below"),
]
_LONGEST = [
    ("86400", "1 day"),
    ("259200", "3 days"),
    ("604800", "1 week"),
    ("1209600", "2 weeks"),
    ("2592000", "30 days"),
]


def _note(identity: str, rows: int = 2) -> forms.Textarea:
    return forms.Textarea(attrs={"rows": rows, "maxlength": commenting.MAX, "id": identity})


class HandlingForm(PressedForm):
    """A form whose fields the domain may refuse by name."""

    def refuse(self, refused: Invalid) -> None:
        """Puts what the domain refused beside its fields; what belongs to none stands above."""
        for error in refused.details["errors"]:
            field = error["field"] if error["field"] in self.fields else None
            self.add_error(field, error["message"])


class WaitForm(HandlingForm):
    """Whose answer a case waits for, and until when. Times are in the reader's own zone, else UTC."""

    waits_for = forms.ChoiceField(
        label="Waits for",
        choices=[("", "Choose whom"), *WaitsFor.choices],
        error_messages={"required": "Say whose answer it waits for."},
    )
    reference = forms.CharField(
        label="Reference",
        required=False,
        max_length=waiting.MAX_REFERENCE,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
    )
    later = forms.ChoiceField(label="Follow up", choices=_LATER, initial="86400")
    at = forms.DateTimeField(
        label="Exactly at",
        required=False,
        input_formats=["%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"],
        widget=forms.DateTimeInput(attrs={"type": "datetime-local"}),
    )
    longest = forms.ChoiceField(label="At the longest", choices=_LONGEST, initial="604800")
    note = forms.CharField(
        label="Note", required=False, max_length=commenting.MAX, widget=_note("id_wait_note"), strip=True
    )

    def __init__(self, data: Any = None, *, now: datetime, zone: tzinfo | None, told: tzinfo | None = None) -> None:
        """`zone`: the reader's choice; `told`: their browser's own, where they chose none."""
        super().__init__(data, auto_id="id_wait_%s")
        self.now, self.zone, self.may_be_told = now, zone or told or UTC, zone is None

    @property
    def zone_name(self) -> str:
        return str(getattr(self.zone, "key", "UTC"))

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cleaned_data
        exact = found.get("at")
        if exact is not None:
            # Whoever writes a time means it, whatever the list beside it says.
            try:
                found["until"] = exact.replace(tzinfo=self.zone).astimezone(UTC)
            except OverflowError:
                raise ValidationError({"at": "There is no such time."}) from None
        elif found.get("later") == "at":
            raise ValidationError({"at": "Say when."})
        elif found.get("later"):
            found["until"] = self.now + timedelta(seconds=int(found["later"]))
        return found

    def asked(self) -> dict[str, Any]:
        """The arguments of `waiting.put_aside`."""
        found = self.cleaned_data
        return {
            "waits_for": WaitsFor(found["waits_for"]),
            "reference": found["reference"],
            "until": found["until"],
            "longest": self.now + timedelta(seconds=int(found["longest"])),
            "note": found["note"],
        }


class _PersonField(forms.ModelChoiceField):  # type: ignore[type-arg]  # the class takes them in stubs only
    def label_from_instance(self, obj: Any) -> str:
        return str(obj.get_full_name() or obj.get_username())


class HandOverForm(HandlingForm):
    to = _PersonField(
        User.objects.none(),
        label="To",
        empty_label="Choose a person",
        error_messages={"required": "Choose a person.", "invalid_choice": "This person can't decide cases."},
    )
    note = forms.CharField(
        label="Note",
        max_length=commenting.MAX,
        widget=_note("id_hand_note"),
        error_messages={"required": "Say in a note what they should know."},
    )

    def __init__(self, data: Any = None, *, person: User) -> None:
        super().__init__(data, auto_id="id_hand_%s")
        field = self.fields["to"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = people.deciders().exclude(pk=person.pk)


class OpenCaseForm(HandlingForm):
    reason = forms.CharField(
        label="Why",
        max_length=commenting.MAX,
        widget=_note("id_open_reason"),
        error_messages={"required": "Say why: whoever takes the case will ask."},
    )
    customer_waiting = forms.BooleanField(label="The customer waits", required=False)

    def __init__(self, data: Any = None) -> None:
        super().__init__(data, auto_id="id_open_%s")
