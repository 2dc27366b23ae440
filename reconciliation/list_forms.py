"""The filters of the lists. They come from the URL, so anything can stand there: what is not understood filters
nothing, and the page says so beside the field."""

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from django import forms

from actions import money
from actions.models import Agent, Downstream, Kind
from actions.statuses import Status
from reconciliation.models import ReasonCode

AGES: Mapping[str, tuple[str, timedelta]] = {
    "15min": ("15 min", timedelta(minutes=15)),
    "1h": ("1 h", timedelta(hours=1)),
    "4h": ("4 h", timedelta(hours=4)),
    "24h": ("24 h", timedelta(hours=24)),
    "3d": ("3 d", timedelta(days=3)),
    "7d": ("7 d", timedelta(days=7)),
}
_CURRENCY = re.compile(r"[A-Za-z]{3}", re.ASCII)


class Filters(forms.Form):
    """Filters that may name rows of small tables: asked for once, told apart here, as any text can stand in a URL."""

    def __init__(self, data: Any = None) -> None:
        super().__init__(data)
        self._ids: dict[str, dict[str, int]] = {}
        self._prepare()
        self.is_valid()

    def _prepare(self) -> None:
        """Offers what is there to choose from."""

    def _offer(self, field: str, rows: Iterable[tuple[int, str, str]]) -> None:
        found = list(rows)
        self._ids[field] = {name: pk for pk, name, _ in found}
        choice = self.fields[field]
        assert isinstance(choice, forms.ChoiceField)
        choice.choices = [("", f"Any {field}"), *((name, title or name) for _, name, title in found)]

    def id_of(self, field: str) -> int | None:
        return self._ids[field].get(self.cleaned_data.get(field) or "")

    @property
    def understood(self) -> dict[str, str]:
        """What of the request filters, as it stands in the URL, to be kept in links."""
        written = {name: str(self.data.get(name, "")).strip() for name in self.fields if name not in self.errors}
        return {name: text for name, text in written.items() if text}

    @property
    def mistaken(self) -> bool:
        return bool(self.errors)


def _choice(title: str, what: str, options: Iterable[tuple[str, str]]) -> forms.ChoiceField:
    said = f"There is no {what} “%(value)s”."
    choices = [("", title), *options]
    field = forms.ChoiceField(required=False, choices=choices, error_messages={"invalid_choice": said})
    field.widget.attrs["aria-label"] = what.capitalize()
    return field


class QueueFilter(Filters):
    """What of the open cases is shown."""

    reason = _choice("Any reason", "reason", [(code, label.capitalize()) for code, label in ReasonCode.choices])
    kind = _choice("Any kind", "kind", [])
    downstream = _choice("Any downstream", "downstream", [])
    agent = _choice("Any agent", "agent", [])
    amount_from = forms.CharField(required=False, max_length=24)
    amount_to = forms.CharField(required=False, max_length=24)
    currency = forms.CharField(required=False, max_length=3)
    older = _choice("Any age", "age", [(name, f"Older than {title}") for name, (title, _) in AGES.items()])
    incident = forms.IntegerField(required=False, min_value=1, max_value=2**63 - 1, widget=forms.HiddenInput)
    incident.error_messages["invalid"] = "There is no such incident."

    def _prepare(self) -> None:
        self._offer("kind", Kind.objects.order_by("title", "name").values_list("pk", "name", "title"))
        self._offer("downstream", Downstream.objects.order_by("title", "name").values_list("pk", "name", "title"))
        self._offer("agent", ((pk, name, name) for pk, name in Agent.objects.values_list("pk", "name")))
        for name, words in (("amount_from", "from"), ("amount_to", "to"), ("currency", "EUR")):
            self.fields[name].widget.attrs |= {"placeholder": words, "autocomplete": "off"}

    def clean_currency(self) -> str:
        written = str(self.cleaned_data["currency"])
        if written and not _CURRENCY.fullmatch(written):
            raise forms.ValidationError("Three letters, such as EUR.")
        if written:
            _exponent(written.upper())
        return written.upper()

    def clean(self) -> dict[str, Any]:
        found: dict[str, Any] = self.cleaned_data
        for name in ("amount_from", "amount_to"):
            found[f"{name}_minor"] = self._minor(name)
        low, high = found["amount_from_minor"], found["amount_to_minor"]
        if low is not None and high is not None and low > high:
            found["amount_from_minor"] = found["amount_to_minor"] = None
            self.add_error("amount_to", "Less than the amount it begins from.")
            self.add_error("amount_from", "More than the amount it goes to.")
        return found

    def _minor(self, name: str) -> int | None:
        """In minor units of the given currency; None, and a sentence beside the field, for what is no amount."""
        written, currency = self.cleaned_data.get(name, ""), self.cleaned_data.get("currency", "")
        if not written:
            return None
        if not currency:
            if not self.has_error("currency"):
                self.add_error(name, "Say in which currency.")
            return None
        try:
            return money.to_minor(written, currency)
        except money.BadAmount as wrong:
            self.add_error(name, str(wrong))
            return None


def _exponent(currency: str) -> int:
    try:
        return money.exponent(currency)
    except money.BadAmount as wrong:
        raise forms.ValidationError(str(wrong)) from None


class IntentFilter(Filters):
    """What of the intents is shown."""

    q = forms.CharField(required=False, max_length=255, widget=forms.HiddenInput)
    status = _choice("Any status", "status", [(value, value.capitalize()) for value in Status.values])
    kind = _choice("Any kind", "kind", [])
    agent = _choice("Any agent", "agent", [])
    disputed = forms.BooleanField(required=False)

    def _prepare(self) -> None:
        self._offer("kind", Kind.objects.order_by("title", "name").values_list("pk", "name", "title"))
        self._offer("agent", ((pk, name, name) for pk, name in Agent.objects.values_list("pk", "name")))
