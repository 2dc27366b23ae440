"""Intents, to be looked at. `reconciliation.admin` adds its own to their page."""

from typing import Any

from django.contrib import admin
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from actions import history
from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin
from actions.admin.records import AttemptInline, EvidenceInline, ObservationInline, TransitionInline
from actions.admin.search import find_intents
from actions.models import Intent
from actions.statuses import UNSETTLED


class OpenFilter(admin.SimpleListFilter):
    title = "open"
    parameter_name = "open"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("unsettled", "not settled"), ("disputed", "disputed"), ("either", "either")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Intent]) -> QuerySet[Intent]:
        # The partial indexes' own condition stays in the query, or they can't be used.
        either = Q(status__in=list(UNSETTLED)) | Q(disputed=True)
        asked = {
            "unsettled": Q(status__in=list(UNSETTLED)),
            "disputed": either & Q(disputed=True),
            "either": either,
        }
        return queryset.filter(asked.get(self.value() or "", Q()))


class IntentAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "kind",
        shown.text("subject"),
        "amount_",
        "status",
        "status_reason",
        "disputed",
        "agent",
        shown.text("external_id", by=shown.OUTSIDE),
        "created_at",
    ]
    list_filter = ["status", OpenFilter, "kind", "downstream", "agent"]
    list_select_related = ["kind", "agent", "downstream"]
    ordering = ["-id"]
    search_fields = ["subject", "idempotency_key", "external_id", "id"]
    search_help_text = (
        "An order (with its lines), an idempotency key, the downstream's id or our own; or how it begins."
    )
    change_form_template = "admin/landed/intent.html"
    inlines = [AttemptInline, TransitionInline, ObservationInline, EvidenceInline]
    fieldsets = [
        (
            None,
            {"fields": ["id", "status", "status_reason", "status_since", "disputed", "chain"]},
        ),
        (
            "What was asked for",
            {
                "fields": [
                    "agent",
                    "kind",
                    "downstream",
                    "executor",
                    shown.text("subject", by=shown.AGENT),
                    "amount_",
                    shown.raw_json("params", by=shown.AGENT),
                    shown.long_text("note", by=shown.AGENT),
                    shown.raw_json("context", by=shown.AGENT),
                    shown.text("payee", by=shown.AGENT),
                    shown.text("customer", by=shown.AGENT),
                    shown.text("request_key", by=shown.AGENT),
                    "idempotency_key",
                    shown.link_to("repeat_of", label="repeat of (says the agent)"),
                    shown.link_to("look_alike_of"),
                    shown.link_to("policy", label="policy as it was"),
                ]
            },
        ),
        (
            "What became of it",
            {
                "fields": [
                    shown.text("external_id", by=shown.OUTSIDE),
                    "settled_amount_",
                    "settled_by",
                    "settled_at",
                    "hold_reasons",
                    shown.text("guard_key"),
                    "guard_waived",
                ]
            },
        ),
        (
            "What is due",
            {
                "fields": [
                    "lease_until",
                    "send_before",
                    "approve_before",
                    "next_attempt_at",
                    "next_check_at",
                    "checks_made",
                    "first_maybe_sent_at",
                    "fence",
                ]
            },
        ),
        (
            "Digests",
            {
                "fields": [
                    "payload_salt",
                    "payload_digest",
                    "version",
                    "chain_length",
                    "chain_head",
                    "created_at",
                    "erased_at",
                ]
            },
        ),
    ]

    @admin.display(description="amount")
    def amount_(self, intent: Intent) -> str:
        return f"{intent.amount} {intent.currency}" if intent.amount is not None else "-"

    @admin.display(description="settled amount")
    def settled_amount_(self, intent: Intent) -> str:
        if intent.settled_amount is None:
            return "-"
        return f"{intent.settled_amount} {intent.settled_currency or intent.currency}"

    @admin.display(description="history")
    def chain(self, intent: Intent) -> SafeString:
        faults = self.history_faults(intent)
        if not faults:
            return format_html("Holds: all {} links are as they were written.", intent.chain_length)
        wrong = format_html_join("", "<li>{}</li>", ((fault,) for fault in faults))
        return format_html('<strong class="errornote">It was tampered with:</strong><ul>{}</ul>', wrong)

    def history_faults(self, intent: Intent) -> list[str]:
        return history.faults(intent)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Intent], search_term: str
    ) -> tuple[QuerySet[Intent], bool]:
        term = search_term.strip()
        return (find_intents(queryset, term) if term else queryset), False


def register() -> None:
    admin.site.register(Intent, IntentAdmin)
