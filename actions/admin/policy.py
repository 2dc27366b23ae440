"""Downstreams and kinds."""

from copy import copy
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse

from actions import policy_changes
from actions.admin.editing import HistoryAdmin, VersionedForm
from actions.models import Downstream, Kind


def _connectors() -> list[tuple[str, str]]:
    from actions.connectors import registry  # noqa: PLC0415  loads every connector

    return [(name, name) for name in registry.names()]


class DownstreamForm(VersionedForm):
    connector = forms.ChoiceField(choices=_connectors, help_text="Which connector speaks to it.")

    class Meta:
        model = Downstream
        fields = "__all__"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field, now = self.fields.get("connector"), self.instance.connector
        if isinstance(field, forms.ChoiceField) and now and now not in dict(_connectors()):
            # One that was uninstalled stays visible; saving it says so.
            field.choices = [*_connectors(), (now, f"{now} (not installed)")]

    def clean_config(self) -> Any:
        return self.clean_object("config")

    def faults(self) -> dict[str, list[str]]:
        found = policy_changes.faults_of_downstream(self.instance)
        if self.before is not None and (stranded := policy_changes.refuse_stranding(self.before, self.instance)):
            found["identity"] = stranded
        return found


class DownstreamAdmin(HistoryAdmin):
    form = DownstreamForm
    change_form_template = "admin/landed/downstream.html"
    list_display = [
        "name",
        "title",
        "connector",
        "base_url",
        "look_up",
        "dedupes",
        "absence_conclusive",
        "paused",
    ]
    list_filter = ["connector", "look_up", "paused"]
    search_fields = ["name", "title", "base_url", "account"]
    fieldsets = [
        (None, {"fields": ["name", "title", "paused", "pause_reason", "seen_version"]}),
        (
            "Identity: fixed while it has unsettled intents",
            {"fields": ["connector", "base_url", "account", "secret_env", "config"]},
        ),
        (
            "What it declares",
            {"fields": ["look_up", "absence_conclusive", "lag_s", "look_back_s", "dedupes", "dedupe_window_s"]},
        ),
        ("Webhooks", {"fields": ["webhook_secret_env", "webhook_old_secret_env"]}),
        (
            "Sending",
            {
                "fields": [
                    "connect_timeout_ms",
                    "deadline_ms",
                    "lease_margin_ms",
                    "max_concurrency",
                    "max_look_ups",
                    "breaker_after",
                ]
            },
        ),
    ]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        super().save_model(request, obj, form, change)
        for warning in policy_changes.warnings_about_downstream(obj):
            messages.warning(request, warning)

    def get_urls(self) -> list[URLPattern]:
        clone = self.admin_site.admin_view(self.clone_view)
        return [path("<int:pk>/clone/", clone, name="actions_downstream_clone"), *super().get_urls()]

    def clone_view(self, request: HttpRequest, pk: int) -> HttpResponse:
        """Asks for a name; makes a paused copy under it."""
        if not (self.has_add_permission(request) and self.has_view_or_change_permission(request)):
            raise PermissionDenied
        original = Downstream.objects.filter(pk=pk).first()
        if original is None:
            raise Http404
        form = CloneForm(original, request.POST or None)
        if request.method == "POST" and form.is_valid():
            with transaction.atomic():
                made = form.made
                made._history_user = request.user  # type: ignore[attr-defined]  # for django-simple-history
                made.save(force_insert=True)
                self.log_addition(request, made, f"Cloned from {original.name}.")
            messages.success(request, f"{made.name} is a copy of {original.name}; it is paused.")
            return HttpResponseRedirect(reverse("admin:actions_downstream_change", args=[made.pk]))
        context = {
            **self.admin_site.each_context(request),
            "title": f"Clone {original.name}",
            "original": original,
            "form": form,
            "opts": self.opts,
        }
        return TemplateResponse(request, "admin/landed/clone.html", context)


class CloneForm(forms.Form):
    """Only the name is asked for; everything else is the original's."""

    name = forms.CharField(max_length=64, help_text="Small letters, digits, - and _; a letter first.")

    def __init__(self, original: Downstream, data: Any = None) -> None:
        super().__init__(data)
        self.made = copy(original)

    def clean(self) -> dict[str, Any]:
        found = super().clean() or {}
        self.made.pk, self.made._state.adding = None, True
        self.made.name = found.get("name", "")
        self.made.paused, self.made.pause_reason = True, "A new copy; not checked yet."
        try:
            self.made.full_clean(exclude=["connector", "config"])
        except ValidationError as wrong:
            for name, errors in wrong.message_dict.items():
                if name != "name" or "name" not in self.errors:
                    self.add_error("name" if name == "name" else None, errors)
        return found


class KindForm(VersionedForm):
    class Meta:
        model = Kind
        fields = "__all__"

    def clean_params_schema(self) -> Any:
        return self.clean_object("params_schema")

    def clean_limits(self) -> Any:
        return self.clean_object("limits")

    def clean_customer_texts(self) -> Any:
        return self.clean_object("customer_texts")

    def faults(self) -> dict[str, list[str]]:
        found = policy_changes.faults_of_kind(self.instance)
        if self.before is not None and (moved := policy_changes.refuse_moving(self.before, self.instance)):
            found["downstream"] = moved
        if self.before is not None and (named := policy_changes.refuse_renaming(self.before, self.instance)):
            found["name"] = named
        return found


class KindAdmin(HistoryAdmin):
    form = KindForm
    list_display = [
        "name",
        "title",
        "downstream",
        "executors",
        "duplicate_policy",
        "reports_trusted",
        "paused",
    ]
    list_filter = ["downstream", "executors", "paused"]
    list_select_related = ["downstream"]
    search_fields = ["name", "title"]
    fieldsets = [
        (
            None,
            {
                "fields": [
                    "name",
                    "title",
                    "downstream",
                    "executors",
                    "paused",
                    "pause_reason",
                    "seen_version",
                ]
            },
        ),
        (
            "What is proposed",
            {
                "fields": [
                    "params_schema",
                    "amount_rule",
                    "subject_from",
                    "subject_pattern",
                    "subject_case_folds",
                    "payee_from",
                    "customer_from",
                ]
            },
        ),
        (
            "What is let through",
            {"fields": ["limits", "duplicate_policy", "look_alike_policy", "look_alike_window_s"]},
        ),
        ("Sending", {"fields": ["send_before_s", "not_sent_retries", "replay", "replay_schedule"]}),
        (
            "Finding the truth",
            {
                "fields": [
                    "check_schedule",
                    "absences_needed",
                    "absence_spacing_s",
                    "machine_concludes_unclosed",
                    "recheck_failed_s",
                    "relook",
                    "relook_percent",
                    "reports_trusted",
                ]
            },
        ),
        ("People", {"fields": ["review_after_s", "review_due_s", "approval_expires_s", "customer_texts"]}),
    ]


def register() -> None:
    admin.site.register(Downstream, DownstreamAdmin)
    admin.site.register(Kind, KindAdmin)
