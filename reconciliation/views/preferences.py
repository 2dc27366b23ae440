"""How one person likes the desk: their time zone, amounts, theme, and what happens after a decision."""

from babel import Locale
from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from reconciliation.models import AfterDeciding, Preferences, Theme
from reconciliation.reviews import preferences as kept
from reconciliation.views import comfort
from reconciliation.views.frame import DeskRequest, own, page, show

_EXAMPLE = (123_456_789, "EUR")


def _locales() -> list[tuple[str, str]]:
    """Each with an amount as it writes it, so that nobody has to know what a code stands for."""
    offered = [(name, f"{_called(name)}: {comfort.amount(*_EXAMPLE, name)}") for name in comfort.LOCALES]
    return [("", "As the desk: €\N{NO-BREAK SPACE}1,234,567.89"), *sorted(offered, key=lambda pair: pair[1])]


def _called(name: str) -> str:
    return str(Locale.parse(name).get_display_name("en"))


def _zones() -> list[tuple[str, str]]:
    places = [(name, name.replace("_", " ")) for name in comfort.zones()]
    return [("", "The browser’s own"), *places]


class PreferencesForm(forms.Form):
    time_zone = forms.ChoiceField(label="Time zone", required=False, choices=_zones)
    locale = forms.ChoiceField(label="Amounts", required=False, choices=_locales)
    theme = forms.ChoiceField(label="Theme", choices=Theme.choices, widget=forms.RadioSelect)
    after_deciding = forms.ChoiceField(
        label="After a decision", choices=AfterDeciding.choices, widget=forms.RadioSelect
    )
    shortcuts = forms.BooleanField(label="Keyboard shortcuts", required=False)
    notices = forms.BooleanField(label="E-mail about cases", required=False)


@page
def preferences(request: DeskRequest) -> HttpResponse:
    chosen = kept.of(request.user)
    return _show(request, chosen, PreferencesForm(initial={name: getattr(chosen, name) for name in _names()}))


@own
def keep(request: DeskRequest) -> HttpResponse:
    form = PreferencesForm(request.POST)
    if not form.is_valid():
        return _show(request, kept.of(request.user), form, status=422)
    kept.keep(person=request.user, **form.cleaned_data)
    messages.success(request, "Kept. It holds from now on, on every device.")
    return redirect("preferences")


def _names() -> list[str]:
    return list(PreferencesForm.base_fields)


def _show(request: DeskRequest, chosen: Preferences, form: PreferencesForm, *, status: int = 200) -> HttpResponse:
    context = {"here": "preferences", "form": form, "chosen": chosen, "address": request.user.email}
    return show(request, "preferences.html", context, status=status)
