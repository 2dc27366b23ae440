"""Correcting a settled intent: a supervisor proposes, a second person agrees. Every step is a POST of its own."""

import re
from collections.abc import Callable
from typing import Any
from uuid import UUID

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpResponse
from django.shortcuts import redirect

from actions.errors import BadDecision, LandedError
from actions.models import Intent
from actions.statuses import Status
from reconciliation.correction_form import AgreeForm, CorrectionForm, RefuseForm, entries_of
from reconciliation.models import Decision
from reconciliation.reviews import overriding, relinking
from reconciliation.views import comparing, refusals
from reconciliation.views.frame import DeskRequest, action, page, show
from reconciliation.views.refusals import Refusal

# What the proposal says, in words.
_SAYS = {
    (Status.CONFIRMED, Status.FAILED): "It did not happen.",
    (Status.CONFIRMED, Status.CONFIRMED): "It happened, and another ledger entry settles it.",
    (Status.FAILED, Status.CONFIRMED): "It happened.",
}


@page
def correction(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    return _show(request, _find(intent_id))


@action
def propose(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    intent = _find(intent_id)
    if intent.status not in overriding.OTHER:
        return _show(request, intent, refusal=refusals.words(BadDecision("Only what is settled can be corrected.")))
    form = CorrectionForm(intent, request.POST)
    if not form.is_valid():
        return _show(request, intent, form=form, status=422)

    def step() -> None:
        overriding.propose(intent.pk, form.what(), person=request.user, seen=form.seen())

    return _do(request, intent, step, "Proposed. It takes effect when a second person agrees.", form=form)


@action
def agree(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    intent, form = _find(intent_id), AgreeForm(request.POST)
    if not form.is_valid():
        return _show(request, intent, agree_form=form, status=422)

    def step() -> None:
        overriding.agree(_proposal(request, intent), person=request.user, outside=form.cleaned_data["outside"])

    done = "Agreed: it is corrected. The agent sees it on its next read."
    return _do(request, intent, step, done, agree_form=form)


@action
def refuse(request: DeskRequest, intent_id: UUID) -> HttpResponse:
    intent, form = _find(intent_id), RefuseForm(request.POST)
    if not form.is_valid():
        return _show(request, intent, refuse_form=form, status=422)

    def step() -> None:
        overriding.refuse(_proposal(request, intent), person=request.user, note=form.cleaned_data["note"])

    return _do(request, intent, step, "The proposal is rejected; the intent stays as it is.", refuse_form=form)


def _do(request: DeskRequest, intent: Intent, step: Callable[[], None], done: str, **forms: Any) -> HttpResponse:
    try:
        step()
    except LandedError as refused:
        return _show(request, _find(intent.pk), refusal=refusals.words(refused), **forms)
    messages.success(request, done)
    return redirect("correction", intent.pk)


def _find(intent_id: UUID) -> Intent:
    related = ("kind", "agent", "downstream", "policy")
    found = Intent.objects.select_related(*related).filter(pk=intent_id).first()
    if found is None:
        raise Http404("There is no such intent.")
    return found


def _proposal(request: DeskRequest, intent: Intent) -> int:
    """The proposal that the person saw. Raises BadDecision when the page named none of this intent."""
    number = request.POST.get("decision", "")
    if re.fullmatch("[0-9]{1,18}", number) and Decision.objects.filter(pk=int(number), intent=intent).exists():
        return int(number)
    raise BadDecision("There is no such proposal; nothing was done.")


def says(proposal: Decision, intent: Intent) -> str:
    """What a proposal says of the intent."""
    return _SAYS[Status(intent.status), overriding.target_of(proposal, intent)]


def proposal_of(intent: Intent | None, person: User) -> dict[str, Any]:
    """What the pages of an intent and of its case say about correcting it: `proposal`, `proposal_says`,
    `may_correct`."""
    if intent is None or intent.status not in overriding.OTHER:
        return {"proposal": None, "may_correct": False}
    found = overriding.pending(intent.pk)
    return {
        "proposal": found,
        "proposal_says": says(found, intent) if found else "",
        "may_correct": found is None and overriding.may_propose(person),
    }


def _show(
    request: DeskRequest,
    intent: Intent,
    *,
    form: CorrectionForm | None = None,
    agree_form: AgreeForm | None = None,
    refuse_form: RefuseForm | None = None,
    refusal: Refusal | None = None,
    status: int = 200,
) -> HttpResponse:
    told = proposal_of(intent, request.user)
    found, correctable = told["proposal"], intent.status in overriding.OTHER
    context = told | {
        "here": "intents",
        "intent": intent,
        "correctable": correctable,
        "settles": relinking.settling(intent),
        "entries": [(entry, comparing.compare(intent, entry)) for entry in entries_of(intent)],
        "mine": found is not None and found.person_id == request.user.pk,
        "form": _form(request, intent, form, refusal) if correctable and told["may_correct"] else None,
        "unsaved": form["note"].value() if form is not None and found is not None else "",
        "agree_form": agree_form or AgreeForm(auto_id="id_agree_%s"),
        "refuse_form": refuse_form or RefuseForm(auto_id="id_refuse_%s"),
        "refusal": refusal,
    }
    return show(request, "correction.html", context, status=refusal.status if refusal else status)


def _form(
    request: DeskRequest, intent: Intent, form: CorrectionForm | None, refusal: Refusal | None
) -> CorrectionForm:
    """After a refusal: the same words, on the facts that the page shows now."""
    if form is None or refusal is None:
        return form or CorrectionForm(intent)
    seen = overriding.seen(intent)
    now = {"seen_version": str(seen.version), "seen_digest": seen.digest}
    return CorrectionForm(intent, {name: request.POST.get(name, "") for name in form.fields} | now)
