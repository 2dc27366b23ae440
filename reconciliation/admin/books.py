"""What the books say: entries, matches, checks, looks back, and what is left to do. To be looked at."""

from django.contrib import admin

from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin, ReadOnlyInline
from actions.admin.records import evidence_links
from reconciliation.admin import columns
from reconciliation.models import Check, Difference, LedgerEntry, LookBack, Match


class MatchInline(ReadOnlyInline):
    model = Match
    related = ("entry",)
    fields = [columns.entry, "role", "entry_state", "by", "at", "released_at", "released_by"]
    ordering = ["id"]


class MatchOfEntryInline(ReadOnlyInline):
    model = Match
    fields = [shown.link_to("intent"), "role", "entry_state", "by", "at", "released_at", "released_by"]
    ordering = ["id"]


class CheckInline(ReadOnlyInline):
    model = Check
    fields = [
        "started_at",
        "book",
        "by",
        "manual",
        "verdict",
        "counts_as_absence",
        shown.raw_json("grounds", most=1_000),
        evidence_links,
    ]
    ordering = ["position"]


class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "downstream",
        shown.text("entry_id", by=shown.OUTSIDE),
        "role",
        "state",
        shown.text("subject", by=shown.OUTSIDE),
        columns.asked,
        columns.settled,
        "booked_at",
    ]
    list_filter = ["downstream", "state", "role"]
    list_select_related = ["downstream"]
    search_fields = ["=entry_id", "=key", "=subject"]
    fields = [
        "downstream",
        "book",
        shown.text("entry_id", by=shown.OUTSIDE),
        "role",
        "state",
        shown.text("key", by=shown.OUTSIDE),
        shown.text("subject", by=shown.OUTSIDE),
        columns.asked,
        columns.settled,
        "booked_at",
        shown.text("source"),
        shown.link_to("evidence"),
        "first_seen_at",
        "last_seen_at",
        "explain_at",
    ]
    inlines = [MatchOfEntryInline]


class MatchAdmin(ReadOnlyAdmin):
    list_display = ["id", columns.entry, shown.link_to("intent"), "role", "by", "at", "released_at"]
    list_filter = ["role"]
    list_select_related = ["entry"]
    search_fields = ["=entry__entry_id", "=intent__id", "=intent__idempotency_key"]
    fields = [
        columns.entry,
        shown.link_to("intent"),
        "role",
        "entry_state",
        "by",
        "at",
        "released_at",
        "released_by",
    ]


class CheckAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        shown.link_to("intent"),
        "verdict",
        "counts_as_absence",
        "manual",
        "book",
        "started_at",
    ]
    list_filter = ["verdict", "manual"]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key"]
    fields = [
        shown.link_to("intent"),
        "book",
        "by",
        "manual",
        "started_at",
        "fence",
        "verdict",
        "counts_as_absence",
        shown.raw_json("grounds"),
        evidence_links,
        "facts_digest",
        "at",
        "position",
        "previous",
        "digest",
    ]


class DifferenceAdmin(ReadOnlyAdmin):
    list_display = ["id", shown.link_to("intent"), "what", columns.asked, "opened_at", "resolved_at", "resolved_by"]
    list_filter = ["what", ("resolved_at", admin.EmptyFieldListFilter)]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key"]
    fields = [
        shown.link_to("intent"),
        "what",
        columns.asked,
        columns.entry,
        shown.link_to("decision"),
        "opened_at",
        "resolved_at",
        "resolved_by",
        columns.note,
    ]


class LookBackAdmin(ReadOnlyAdmin):
    list_display = ["downstream", "next_at", "through", "finished_at", shown.text("problem", by=shown.OUTSIDE)]
    list_select_related = ["downstream"]
    fields = [
        "downstream",
        "next_at",
        "through",
        "finished_at",
        shown.text("problem", by=shown.OUTSIDE),
        "began_at",
        "pages",
        "unread",
        "stuck",
        shown.text("cursor", by=shown.OUTSIDE),
    ]


def register() -> None:
    admin.site.register(Difference, DifferenceAdmin)
    admin.site.register(LookBack, LookBackAdmin)
    admin.site.register(LedgerEntry, LedgerEntryAdmin)
    admin.site.register(Match, MatchAdmin)
    admin.site.register(Check, CheckAdmin)
