"""Pauses: which agents, kinds and downstreams nothing is sent of, or to; who said so and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from actions import pausing
from actions.errors import Invalid, NotFound, PersonNotAllowed
from actions.pausing import Change, Changed, Pausable, PauseScope
from reconciliation.reviews import pausing as by_people
from reconciliation.reviews import people
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views.frame import DeskRequest, action, page, show

MOST_LISTED = 200
MOST_LATELY = 20
ONLY_SUPERVISORS = "Only supervisors pause things and let them go on, so nothing was changed."
_STOPS = {
    PauseScope.AGENT: "It can propose nothing, and nothing that it proposed is sent.",
    PauseScope.KIND: "Nothing of this kind is proposed or sent.",
    PauseScope.DOWNSTREAM: "Nothing is sent there; proposals are recorded and wait.",
}


@dataclass(frozen=True)
class Row:
    """Something that can be paused. `change`: when that changed last, if it ever did."""

    scope: str
    row: Pausable
    change: Change | None
    stops: str


@dataclass(frozen=True)
class Happened:
    """Something was paused, or went on."""

    scope: str
    name: str
    change: Change


class PauseForm(forms.Form):
    what = forms.CharField(max_length=80, error_messages={"required": "Say what."})
    reason = forms.CharField(
        max_length=pausing.MAX_REASON,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Say why: colleagues will ask."},
    )
    seen = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)
    back = forms.CharField(required=False, max_length=500, widget=forms.HiddenInput)

    def clean_what(self) -> tuple[str, str]:
        """`agent:support-bot`, as the pages send it."""
        scope, _, name = self.cleaned_data["what"].partition(":")
        if scope not in PauseScope.values or not name:
            raise forms.ValidationError("Choose one of the list.")
        return scope, name


@page
def pauses(request: DeskRequest) -> HttpResponse:
    return _show(request, PauseForm())


@action
def pause(request: DeskRequest) -> HttpResponse:
    form = PauseForm(request.POST)
    return _change(request, form, stop=True)


@action
def resume(request: DeskRequest) -> HttpResponse:
    form = PauseForm(request.POST)
    return _change(request, form, stop=False)


def _change(request: DeskRequest, form: PauseForm, *, stop: bool) -> HttpResponse:
    if not form.is_valid():
        return _show(request, form, status=422)
    given, (scope, name) = form.cleaned_data, form.cleaned_data["what"]
    try:
        if stop:
            done = by_people.pause(scope, name, person=request.user, reason=given["reason"])
        else:
            done = by_people.resume(scope, name, person=request.user, reason=given["reason"], seen=given["seen"])
    except PersonNotAllowed:
        form.add_error(None, ONLY_SUPERVISORS)
        return _show(request, form, status=403)
    except NotFound as gone:
        form.add_error("what", gone.message)
        return _show(request, form, status=404)
    except Invalid as wrong:
        for error in wrong.details["errors"]:
            form.add_error(error["field"], error["message"])
        return _show(request, form, status=422)
    _tell(request, done, scope, stop=stop)
    return redirect(safe_back(given["back"]) or reverse("pauses"))


def _tell(request: DeskRequest, done: Changed, scope: str, *, stop: bool) -> None:
    name = f"the {scope} {done.row.name}"
    if done.changed and stop:
        messages.success(
            request, f"Paused: {name}. {_STOPS[PauseScope(scope)]} What was claimed before this may go out."
        )
    elif done.changed:
        messages.success(request, f"Resumed: {name}. What waited is sent from now on.")
    else:
        messages.warning(request, f"{_faster(done, stop=stop)} Nothing was changed.")


def _faster(done: Changed, *, stop: bool) -> str:
    """By whom and when, for whoever came second."""
    how = "paused" if done.row.paused else "running"
    began = (
        f"The {type(done.row).__name__.lower()} {done.row.name} is {how} already"
        if done.row.paused is stop
        else (f"The {type(done.row).__name__.lower()} {done.row.name} was paused anew since you opened the page")
    )
    newest = done.newest
    if newest is None:
        return f"{began}."
    why = f": {newest.reason}" if newest.reason else ""
    return f"{began}, by {_by(newest)} at {newest.at:%H:%M:%S} UTC{why}."


def _by(change: Change) -> str:
    return name_of(change.by) if change.by is not None else change.program or "a program"


def safe_back(path: str) -> str:
    """A page of ours, as the form says; empty for anything else."""
    inside = path.startswith("/") and url_has_allowed_host_and_scheme(path, allowed_hosts=None)
    return path if inside else ""


def _show(request: DeskRequest, form: PauseForm, *, status: int = 200) -> HttpResponse:
    paused, running = _rows(paused=True), _rows(paused=False)
    context: dict[str, Any] = {
        "here": "stops",
        "paused": paused,
        "running": running,
        "most": MOST_LISTED,
        "happened": _lately(),
        "form": form,
        "chosen": form["what"].value() or "",
        "back": safe_back(str(form["back"].value() or "")),
        "may_pause": people.may_supervise(request.user),
    }
    return show(request, "pauses.html", context, status=status)


def _rows(*, paused: bool) -> list[Row]:
    return [row for scope in PauseScope for row in _of_scope(scope, paused=paused)]


def _of_scope(scope: PauseScope, *, paused: bool) -> Iterable[Row]:
    model = pausing.MODELS[scope]
    found = list(model.objects.filter(paused=paused).order_by("name")[:MOST_LISTED])
    if not found:
        return
    # Who let what runs go on is told below, in the list of what happened lately.
    changes = pausing.newest_of(scope, model.objects.filter(pk__in=[row.pk for row in found])) if paused else {}
    for row in found:
        yield Row(scope, row, changes.get(row.pk), _STOPS[scope])


def _lately() -> list[Happened]:
    found = [
        Happened(scope, name, change)
        for scope in PauseScope
        for name, change in pausing.lately(scope, most=MOST_LATELY)
    ]
    return sorted(found, key=lambda one: one.change.at, reverse=True)[:MOST_LATELY]
