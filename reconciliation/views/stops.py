"""Stops: what nothing is sent for before a person has looked, who said so and why."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from actions import stops as actions_stops
from actions import times
from actions.errors import Invalid, NotFound, PersonNotAllowed
from actions.models import Kind, Stop, StopScope
from reconciliation.reviews import people, stopping
from reconciliation.views import paging
from reconciliation.views.frame import DeskRequest, action, page, show
from reconciliation.views.names import names_of
from reconciliation.views.paging import Page

MOST_LIFTED = 20
ONLY_SUPERVISORS = "Only supervisors and administrators lift a stop, so nothing was changed."


@dataclass(frozen=True)
class Row:
    """A stop with the names of those who placed and lifted it."""

    stop: Stop
    placed_by: str
    lifted_by: str


class StopForm(forms.Form):
    scope = forms.ChoiceField(label="What", choices=StopScope.choices)
    value = forms.CharField(
        label="Which",
        max_length=actions_stops.MAX_VALUE,
        widget=forms.TextInput(attrs={"autocomplete": "off", "spellcheck": "false"}),
        error_messages={"required": "Say which one."},
    )
    kind = forms.ModelChoiceField(
        Kind.objects.order_by("title"),
        label="For",
        required=False,
        to_field_name="name",
        empty_label="every kind",
        blank=True,
    )
    reason = forms.CharField(
        max_length=actions_stops.MAX_REASON,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Say why: whoever meets it will ask."},
    )
    # Where the person came from, and goes back to.
    case = forms.IntegerField(required=False, min_value=1, widget=forms.HiddenInput)


@page
def stops(request: DeskRequest) -> HttpResponse:
    """Those in force and the last ones that were lifted. The address may fill in the form."""
    return _show(request, StopForm(initial={name: request.GET.get(name, "") for name in StopForm.base_fields}))


@action
def place(request: DeskRequest) -> HttpResponse:
    form = StopForm(request.POST)
    if not form.is_valid():
        return _show(request, form, status=422)
    asked, began = dict(form.cleaned_data), times.now()
    case = asked.pop("case")
    try:
        stop = stopping.place(person=request.user, **asked)
    except Invalid as wrong:
        for error in wrong.details["errors"]:
            form.add_error(error["field"], error["message"])
        return _show(request, form, status=422)
    what = f"the {stop.get_scope_display()} {stop.value}" + (f", for {stop.kind.title}" if stop.kind else "")
    if stop.placed_at < began:
        messages.warning(request, f"There is a stop already on {what}; it stays as it is.")
    else:
        messages.success(request, f"Stopped: {what}. Nothing that it concerns is sent.")
    return redirect("case", case) if case else redirect("stops")


@action
def lift(request: DeskRequest, stop_id: int) -> HttpResponse:
    try:
        stop = stopping.lift(stop_id, person=request.user)
    except PersonNotAllowed:
        raise PermissionDenied(ONLY_SUPERVISORS) from None
    except NotFound as gone:
        raise Http404(gone.message) from None
    held = "What it held still waits for its own approval."
    messages.success(request, f"Lifted: the {stop.get_scope_display()} {stop.value}. {held}")
    return redirect("stops")


def _show(request: DeskRequest, form: StopForm, *, status: int = 200) -> HttpResponse:
    found = _page_of(request.GET.get("after", ""))
    lifted = Stop.objects.select_related("kind").filter(lifted_at__isnull=False).order_by("-lifted_at", "-pk")
    context: dict[str, Any] = {
        "here": "stops",
        "page": Page(rows(found.rows), found.following),
        "lifted": rows(lifted[:MOST_LIFTED]),
        "form": form,
        "back": _case_of(form),
        "may_lift": people.may_decide(request.user) and people.may_lift_stop(request.user),
    }
    return show(request, "stops.html", context, status=status)


def _page_of(after: str) -> Page[Stop]:
    """The stops in force, newest first."""
    found, cursor = actions_stops.active().order_by("-pk"), paging.decode(after, parts=1)
    if cursor and isinstance(cursor[0], int):
        found = found.filter(pk__lt=cursor[0])
    shown, more = paging.cut(found[: paging.PER_PAGE + 1])
    return Page(shown, paging.encode(shown[-1].pk) if more else "")


def rows(found: Iterable[Stop]) -> list[Row]:
    """One query more, for everybody's names."""
    listed = list(found)
    names = names_of(by for stop in listed for by in (stop.placed_by, stop.lifted_by))
    return [
        Row(stop, names.get(stop.placed_by, stop.placed_by), names.get(stop.lifted_by, stop.lifted_by))
        for stop in listed
    ]


def _case_of(form: StopForm) -> str:
    """The address of the case that the person came from; empty when they came by themselves."""
    case = form["case"].value()
    return reverse("case", args=[case]) if str(case).isascii() and str(case).isdigit() and len(str(case)) < 19 else ""
