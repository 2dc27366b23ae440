"""The whole page of an intent: with what the books and people say, notes, and overrides."""

import re
from typing import Any
from uuid import UUID

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from actions.admin.intents import IntentAdmin
from actions.errors import BadDecision, LandedError, SeenIsStale, StaleTransition
from actions.models import Intent
from actions.statuses import Status
from reconciliation.admin import columns
from reconciliation.admin.books import CheckInline, MatchInline
from reconciliation.admin.notes import NoteForm, store_note
from reconciliation.admin.queue import CommentInline, DecisionOfIntentInline, ReviewInline
from reconciliation.correction_form import AgreeForm, CorrectionForm, RefuseForm, entries_of
from reconciliation.models import Check, Decision
from reconciliation.reviews import overriding, verifying
from reconciliation.reviews.overriding import OTHER


class WholeIntentAdmin(IntentAdmin):
    inlines = [*IntentAdmin.inlines, CheckInline, MatchInline, ReviewInline, DecisionOfIntentInline, CommentInline]

    def history_faults(self, intent: Intent) -> list[str]:
        return verifying.intent_faults(intent)

    def get_urls(self) -> list[URLPattern]:
        wrap = self.admin_site.admin_view
        return [
            path("<uuid:pk>/note/", wrap(self.note_view), name="actions_intent_note"),
            path("<uuid:pk>/override/", wrap(self.override_view), name="actions_intent_override"),
            *super().get_urls(),
        ]

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        intent = self.get_object(request, object_id)
        links: dict[str, Any] = {}
        if intent is not None and _may_note(request):
            links["note_url"] = reverse("admin:actions_intent_note", args=[intent.pk])
        if intent is not None and _may_override(request) and intent.status in OTHER:
            links["override_url"] = reverse("admin:actions_intent_override", args=[intent.pk])
        return super().change_view(request, object_id, form_url, links | (extra_context or {}))

    def note_view(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        if not _may_note(request):
            raise PermissionDenied
        intent = self._intent(request, pk)
        form = NoteForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            with transaction.atomic():
                store_note(intent, person=_person(request), text=form.cleaned_data["note"])
                self.log_change(request, intent, "Added a note.")
            messages.success(request, "The note is stored.")
            return HttpResponseRedirect(_page(intent))
        return self._answer(request, intent, "note", title="Add a note", form=form)

    def override_view(self, request: HttpRequest, pk: UUID) -> HttpResponse:
        """GET shows; POST with `do` = propose, agree or refuse acts, once."""
        if not _may_override(request):
            raise PermissionDenied
        intent = self._intent(request, pk)
        if intent.status not in OTHER:
            messages.error(request, "Only a confirmed or a failed intent can be overridden.")
            return HttpResponseRedirect(_page(intent))
        if request.method != "POST":
            return self._show_override(request, intent)
        act = {"propose": self._propose, "agree": self._agree, "refuse": self._refuse}.get(request.POST.get("do", ""))
        if act is None:
            raise Http404
        return act(request, intent)

    def _propose(self, request: HttpRequest, intent: Intent) -> HttpResponse:
        form = CorrectionForm(intent, request.POST)
        if not form.is_valid():
            return self._show_override(request, intent, form=form)
        what = form.what()
        try:
            overriding.propose(intent.pk, what, person=_person(request), seen=form.seen())
            self.log_change(request, intent, f"Proposed the override to {what.to.label} ({what.reason}).")
        except LandedError as refused:
            return self._show_override(request, intent, form=form, refused=refused)
        messages.success(request, "Proposed. It takes effect when a second person agrees.")
        return HttpResponseRedirect(request.path)

    def _agree(self, request: HttpRequest, intent: Intent) -> HttpResponse:
        form = AgreeForm(request.POST)
        if not form.is_valid():
            return self._show_override(request, intent, agree_form=form)
        try:
            proposal, outside = _decision_id(request, intent), form.cleaned_data["outside"]
            changed = overriding.agree(proposal, person=_person(request), outside=outside)
            self.log_change(request, changed, f"Agreed to the override: now {changed.get_status_display()}.")
        except LandedError as refused:
            return self._show_override(request, intent, agree_form=form, refused=refused)
        messages.success(request, f"The intent is now {changed.get_status_display()}.")
        return HttpResponseRedirect(_page(intent))

    def _refuse(self, request: HttpRequest, intent: Intent) -> HttpResponse:
        form = RefuseForm(request.POST)
        if not form.is_valid():
            return self._show_override(request, intent, refuse_form=form)
        try:
            with transaction.atomic():
                note = form.cleaned_data["note"]
                overriding.refuse(_decision_id(request, intent), person=_person(request), note=note)
                self.log_change(request, intent, "Rejected the proposed override.")
        except LandedError as refused:
            return self._show_override(request, intent, refuse_form=form, refused=refused)
        messages.success(request, "The proposal is rejected; the intent stays as it is.")
        return HttpResponseRedirect(request.path)

    def _show_override(
        self,
        request: HttpRequest,
        intent: Intent,
        *,
        form: CorrectionForm | None = None,
        agree_form: AgreeForm | None = None,
        refuse_form: RefuseForm | None = None,
        refused: LandedError | None = None,
    ) -> HttpResponse:
        intent.refresh_from_db()
        if intent.status not in OTHER:
            messages.error(request, refused.message if refused else "It changed meanwhile; nothing was done.")
            return HttpResponseRedirect(_page(intent))
        pending = overriding.pending(intent.pk)
        to = overriding.target_of(pending, intent) if pending else OTHER[Status(intent.status)]
        if form is not None and isinstance(refused, SeenIsStale | StaleTransition):
            form = _on_what_is_there_now(intent, form)
        return self._answer(
            request,
            intent,
            "override",
            status=409 if refused else 200,
            title=f"Override: {intent.get_status_display()} → {to.label}",
            to=to,
            refused=refused,
            form=form or CorrectionForm(intent),
            agree_form=agree_form or AgreeForm(auto_id="id_agree_%s"),
            refuse_form=refuse_form or RefuseForm(auto_id="id_refuse_%s"),
            pending=pending,
            pending_note=columns.said(pending.note) if pending else "",
            pending_amount=columns.settled(pending) if pending else "",
            mine=pending is not None and pending.person_id == _person(request).pk,
            attempts=intent.attempts.order_by("number"),
            checks=Check.objects.filter(intent=intent).order_by("-position")[:10],
            entries=[(entry, columns.asked(entry)) for entry in entries_of(intent)],
        )

    def _answer(
        self, request: HttpRequest, intent: Intent, page: str, *, status: int = 200, **context: Any
    ) -> HttpResponse:
        context |= self.admin_site.each_context(request) | {"intent": intent, "opts": self.opts}
        return TemplateResponse(request, f"admin/landed/{page}.html", context, status=status)

    def _intent(self, request: HttpRequest, pk: UUID) -> Intent:
        intent: Intent | None = self.get_object(request, str(pk))
        if intent is None:
            raise Http404
        if not self.has_view_permission(request, intent):
            raise PermissionDenied
        return intent


def _on_what_is_there_now(intent: Intent, form: CorrectionForm) -> CorrectionForm:
    """The same entries, on the facts that the page now shows: sending it again is a decision on these."""
    seen = overriding.seen(intent)
    now = {"seen_version": seen.version, "seen_digest": seen.digest, "to": OTHER[Status(intent.status)].value}
    return CorrectionForm(intent, {name: form.data.get(name, "") for name in form.data} | now)


def _decision_id(request: HttpRequest, intent: Intent) -> int:
    """The proposal that the person saw. Raises BadDecision when the page named none of this intent."""
    number = request.POST.get("decision", "")
    if re.fullmatch("[0-9]{1,18}", number) and Decision.objects.filter(pk=int(number), intent=intent).exists():
        return int(number)
    raise BadDecision("There is no such proposal; nothing was done.")


def _page(intent: Intent) -> str:
    return reverse("admin:actions_intent_change", args=[intent.pk])


def _person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # admin_view has asked for a login
    return request.user


def _may_override(request: HttpRequest) -> bool:
    return _person(request).has_perm("actions.override_intent")


def _may_note(request: HttpRequest) -> bool:
    return _person(request).has_perm("actions.add_evidence")


def register() -> None:
    admin.site.unregister(Intent)
    admin.site.register(Intent, WholeIntentAdmin)
