"""Agents and their tokens."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from actions import policy_changes, times, tokens
from actions.admin.editing import HistoryAdmin, VersionedForm
from actions.admin.limits import LimitsField
from actions.admin.read_only import ReadOnlyInline
from actions.models import Agent, Kind, Token


class AgentForm(VersionedForm):
    limits = LimitsField()

    class Meta:
        model = Agent
        fields = "__all__"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if "limits" in self.fields:
            table: Any = self.fields["limits"].widget
            table.kinds = list(Kind.objects.values_list("name", flat=True))

    def clean_limits(self) -> Any:
        found = self.cleaned_data["limits"]
        # What the form didn't show stays: no limits at all would be the most dangerous of all defaults.
        return self.instance.limits if found is None else found

    def faults(self) -> dict[str, list[str]]:
        return policy_changes.faults_of_agent(self.instance, kinds=Kind.objects.values_list("name", flat=True))


class TokenInline(ReadOnlyInline):
    model = Token
    fields = ["label", "scopes_", "created_at", "expires_at", "revoked_at", "last_used_at"]
    ordering = ["-pk"]

    @admin.display(description="scopes")
    def scopes_(self, token: Token) -> str:
        return ", ".join(sorted(token.scopes))


class AgentAdmin(HistoryAdmin):
    form = AgentForm
    list_display = ["name", "title", "group", "built_in", "rate_per_minute", "paused"]
    list_filter = ["group", "paused"]
    search_fields = ["name", "title", "group"]
    filter_horizontal = ["kinds"]
    inlines = [TokenInline]
    fieldsets = [
        (None, {"fields": ["name", "title", "group", "built_in", "seen_version"]}),
        ("What it may do", {"fields": ["kinds", "rate_per_minute", "paused", "pause_reason"]}),
        ("Limits", {"fields": ["limits", "tripped_at"]}),
    ]

    def get_readonly_fields(self, request: HttpRequest, obj: Agent | None = None) -> list[str]:
        # The application's own agent is found by its name.
        fixed = ["built_in", "tripped_at"]
        return [*fixed, "name"] if obj is not None and obj.built_in else fixed

    def get_inlines(self, request: HttpRequest, obj: Agent | None) -> Any:
        return self.inlines if obj is not None else []


class TokenForm(VersionedForm):
    revoke = forms.BooleanField(required=False, help_text="From now on it is refused, for good.")

    class Meta:
        model = Token
        fields = [
            "agent",
            "label",
            "may_propose",
            "may_report",
            "may_read",
            "may_give_evidence",
            "expires_at",
        ]

    def clean_agent(self) -> Any:
        agent = self.cleaned_data["agent"]
        if agent.built_in and self.instance.pk is None:
            raise forms.ValidationError("The built-in application is trusted because it is this process; no token.")
        return agent

    def clean_expires_at(self) -> Any:
        expires_at = self.cleaned_data.get("expires_at")
        if expires_at is not None and "expires_at" in self.changed_data and expires_at <= times.now():
            raise forms.ValidationError("That is in the past. To end a token now, revoke it.")
        return expires_at


_SCOPES = ["may_propose", "may_report", "may_read", "may_give_evidence"]
_SEEN = ["prefix", "created_at", "last_used_at", "revoked_at"]


class TokenAdmin(HistoryAdmin):
    form = TokenForm
    list_display = [
        "prefix",
        "agent",
        "label",
        "scopes_",
        "created_at",
        "expires_at",
        "revoked_at",
        "last_used_at",
    ]
    list_filter = ["agent"]
    list_select_related = ["agent"]
    search_fields = ["prefix", "label", "agent__name"]
    actions = ["revoke_selected"]

    @admin.display(description="scopes")
    def scopes_(self, token: Token) -> str:
        return ", ".join(sorted(token.scopes))

    def get_fieldsets(self, request: HttpRequest, obj: Token | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ["agent", "label", *_SCOPES, "expires_at"]})]
        revoke = [] if obj.revoked_at else ["revoke"]
        return [
            (None, {"fields": ["agent", "label", "expires_at", *revoke, "seen_version"]}),
            ("Fixed", {"fields": [*_SCOPES, *_SEEN]}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Token | None = None) -> list[str]:
        # What a token may do is fixed when it is handed out; another task needs another token.
        return [] if obj is None else ["agent", *_SCOPES, *_SEEN]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if change:
            super().save_model(request, obj, form, change)
            if form.cleaned_data.get("revoke"):
                tokens.revoke(obj)
            return
        text = tokens.mint(obj)
        super().save_model(request, obj, form, change)
        messages.warning(request, _show_once(text))

    @admin.action(description="Revoke the selected tokens", permissions=["change"])
    def revoke_selected(self, request: HttpRequest, chosen: QuerySet[Token]) -> None:
        still_valid = list(chosen.filter(revoked_at__isnull=True))
        for token in still_valid:
            tokens.revoke(token)
            self.log_change(request, token, "Revoked.")
        self.message_user(request, f"Revoked: {len(still_valid)}.", messages.SUCCESS)


def _show_once(text: str) -> SafeString:
    # Django keeps a short message in a signed cookie of this browser: the secret is not stored on our side.
    return format_html(
        "The token, shown this once and never again: <code>{}</code> Copy it to where the agent reads its secrets.",
        text,
    )


def register() -> None:
    admin.site.register(Agent, AgentAdmin)
    admin.site.register(Token, TokenAdmin)
