"""Endpoints of webhooks, and what was sent to them: to be looked at, and sent again."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from actions.admin import shown
from actions.admin.editing import HistoryAdmin, VersionedForm
from actions.admin.read_only import ReadOnlyAdmin, ReadOnlyInline
from actions.models import TOLD, DeliveryTry, Endpoint, Event, EventDelivery
from actions.notifying import addresses, replaying, secrets

_REPLAY = "actions.replay_eventdelivery"


class EndpointForm(VersionedForm):
    types = forms.MultipleChoiceField(
        choices=[(kind.value, f"{kind.value}: {kind.label}") for kind in TOLD],
        widget=forms.CheckboxSelectMultiple,
        help_text="What it is told of.",
    )
    rotate = forms.BooleanField(
        required=False, help_text="Makes the next secret and shows it once. The one before counts for a day more."
    )
    at_once = forms.BooleanField(
        required=False, label="At once", help_text="With the above: the one before counts no longer (it leaked)."
    )

    class Meta:
        model = Endpoint
        fields = ["agent", "url", "types", "active"]

    def clean_url(self) -> str:
        url = str(self.cleaned_data["url"]).strip()
        if wrong := addresses.fault(url):
            raise forms.ValidationError(wrong)
        return url

    def clean_at_once(self) -> bool:
        at_once = bool(self.cleaned_data["at_once"])
        if at_once and not self.cleaned_data.get("rotate"):
            raise forms.ValidationError("Only together with a new secret.")
        return at_once


_SEEN = ["created_at", "inactive_because", "secret_version", "previous_until", "failures", "not_before", "planned_to"]


class EndpointAdmin(HistoryAdmin):
    form = EndpointForm
    list_display = ["id", "agent", "url", "active", "failures", "not_before", "previous_until"]
    list_display_links = ["id", "url"]
    list_filter = ["agent", "active"]
    list_select_related = ["agent"]
    search_fields = ["url", "agent__name"]
    actions = ["replay_given_up"]

    def get_fieldsets(self, request: HttpRequest, obj: Endpoint | None = None) -> Any:
        if obj is None:
            return [(None, {"fields": ["agent", "url", "types"]})]
        return [
            (None, {"fields": ["agent", "url", "types", "active", "seen_version"]}),
            ("Secret", {"fields": ["rotate", "at_once"]}),
            ("Seen", {"fields": _SEEN}),
        ]

    def get_readonly_fields(self, request: HttpRequest, obj: Endpoint | None = None) -> list[str]:
        # Whose intents it hears of doesn't change: deliveries under way are about those.
        return [] if obj is None else ["agent", *_SEEN]

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        if not change:
            secret = secrets.begin(obj)
            super().save_model(request, obj, form, change)
            messages.warning(request, _show_once(secret))
            return
        if obj.active and not form.before.active:
            obj.inactive_because = ""
            Endpoint.objects.filter(pk=obj.pk).update(inactive_because="", failures=0, not_before=None)
        super().save_model(request, obj, form, change)
        if form.cleaned_data.get("rotate"):
            messages.warning(request, _show_once(secrets.rotate(obj, at_once=form.cleaned_data["at_once"])))

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(_REPLAY)

    @admin.action(description="Send again what was given up for the selected endpoints", permissions=["replay"])
    def replay_given_up(self, request: HttpRequest, chosen: QuerySet[Endpoint]) -> None:
        number = 0
        for endpoint in chosen:
            asked = replaying.replay_given_up(endpoint)
            self.log_change(request, endpoint, f"Sent again what was given up: {asked}.")
            number += asked
        self.message_user(request, f"Sent again: {number}.", messages.SUCCESS)


def _show_once(secret: str) -> SafeString:
    # Django keeps a short message in a signed cookie of this browser, as with tokens.
    return format_html(
        "The signing secret, shown this once and never again: <code>{}</code> Copy it to the receiver.", secret
    )


class TryInline(ReadOnlyInline):
    model = DeliveryTry
    fields = [
        "at",
        "result",
        "http_status",
        shown.text("error"),
        shown.long_text("answer", by=shown.OUTSIDE, most=300),
        "took_ms",
    ]
    ordering = ["-pk"]


class EventDeliveryAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "endpoint",
        shown.link_to("event"),
        "state",
        "attempts",
        "next_at",
        "last_status",
        "last_error_",
    ]
    list_filter = ["state", "endpoint"]
    list_select_related = ["endpoint"]
    search_fields = ["=event__id", "=event__intent__id"]
    fields = [
        shown.link_to("endpoint"),
        shown.link_to("event"),
        "state",
        "attempts",
        "created_at",
        "next_at",
        "give_up_at",
        "lease_until",
        "last_status",
        shown.text("last_error"),
        "delivered_at",
    ]
    inlines = [TryInline]
    actions: Any = ["replay_selected"]

    @admin.display(description="last error")
    def last_error_(self, row: EventDelivery) -> str:
        return row.last_error[:80] or "-"

    def has_replay_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm(_REPLAY)

    @admin.action(description="Send the selected webhooks again", permissions=["replay"])
    def replay_selected(self, request: HttpRequest, chosen: QuerySet[EventDelivery]) -> None:
        rows = list(chosen)
        again = [row for row in rows if replaying.replay(row.pk)]
        for row in again:
            self.log_change(request, row, "Sent again.")
        self.message_user(request, f"Sent again: {len(again)}.", messages.SUCCESS)
        if busy := len(rows) - len(again):
            self.message_user(request, f"Being sent at this moment, so left alone: {busy}.", messages.WARNING)


class DeliveryTryAdmin(ReadOnlyAdmin):
    list_display = ["id", shown.link_to("delivery"), "at", "result", "http_status", shown.text("error"), "took_ms"]
    list_filter = ["result"]
    search_fields = ["=delivery__id"]
    fields = [
        shown.link_to("delivery"),
        "at",
        "result",
        "http_status",
        shown.text("error"),
        shown.long_text("answer", by=shown.OUTSIDE),
        "took_ms",
    ]


class EventAdmin(ReadOnlyAdmin):
    list_display = ["id", "position", "type", shown.link_to("intent"), "sequence", "intent_status", "at"]
    list_filter = ["type"]
    search_fields = ["=intent__id", "=position"]
    fields = ["position", "type", shown.link_to("intent"), shown.link_to("agent"), "sequence", "intent_status", "at"]


def register() -> None:
    admin.site.register(Endpoint, EndpointAdmin)
    admin.site.register(EventDelivery, EventDeliveryAdmin)
    admin.site.register(DeliveryTry, DeliveryTryAdmin)
    admin.site.register(Event, EventAdmin)
