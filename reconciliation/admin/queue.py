"""The queue: reviews, decisions, comments, incidents. To be looked at; people decide at the desk."""

from django.contrib import admin

from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin, ReadOnlyInline
from actions.admin.records import evidence_links
from reconciliation.admin import columns
from reconciliation.models import Comment, Decision, Incident, Review, ReviewReason


class ReviewInline(ReadOnlyInline):
    model = Review
    related = ("owner", "holder")
    fields = [
        "purpose",
        "recommendation",
        "verdict",
        "owner",
        "opened_at",
        "due_at",
        "closed_at",
        "closed_how",
    ]
    ordering = ["id"]


class ReasonInline(ReadOnlyInline):
    model = ReviewReason
    fields = ["code", "at"]
    ordering = ["id"]


class DecisionInline(ReadOnlyInline):
    model = Decision
    related = ("person", "note", "entry")
    fields = [
        "choice",
        "person",
        "reason",
        columns.note,
        shown.link_to("about"),
        columns.settled,
        columns.entry,
        "takes_effect_at",
        "at",
    ]
    ordering = ["id"]


class DecisionOfIntentInline(DecisionInline):
    fk_name = "intent"  # not the intent that a decision about an entry names


class CommentInline(ReadOnlyInline):
    model = Comment
    related = ("person", "text")
    fields = ["person", "by", columns.comment, "at"]
    ordering = ["id"]


class ReviewAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        shown.link_to("intent"),
        "purpose",
        "recommendation",
        "verdict",
        columns.asked,
        "owner",
        "due_at",
        "closed_at",
        "closed_how",
    ]
    list_filter = ["purpose", "reasons__code", "closed_how"]
    list_select_related = ["owner"]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key", "=entry__entry_id"]
    fields = [
        shown.link_to("intent"),
        columns.entry,
        "purpose",
        "recommendation",
        shown.long_text("grounds"),
        "verdict",
        columns.asked,
        "owner",
        "holder",
        "lease_until",
        "waits_for",
        "waits_reference",
        "waits_until",
        "customer_waiting",
        "opened_at",
        "due_at",
        "closed_at",
        "closed_how",
        "version",
        "chain_length",
        "chain_head",
    ]
    inlines = [ReasonInline, DecisionInline, CommentInline]


class DecisionAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        shown.link_to("review"),
        shown.link_to("intent"),
        "choice",
        "reason",
        "person",
        "at",
    ]
    list_filter = ["choice", "reason"]
    list_select_related = ["person"]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key", "=person__username"]
    fields = [
        shown.link_to("review"),
        shown.link_to("intent"),
        "choice",
        "person",
        "reason",
        columns.note,
        shown.link_to("about"),
        "recommended",
        evidence_links,
        columns.entry,
        shown.link_to("linked"),
        columns.settled,
        "seen_version",
        "seen_verdict",
        "seen_digest",
        "payload_digest",
        "takes_effect_at",
        "guard_waived",
        "at",
        "position",
        "previous",
        "digest",
    ]


class CommentAdmin(ReadOnlyAdmin):
    list_display = ["id", shown.link_to("review"), shown.link_to("intent"), "person", "by", "at"]
    list_select_related = ["person"]
    search_fields = ["=intent__id", "=intent__subject", "=person__username"]
    fields = [
        shown.link_to("review"),
        shown.link_to("intent"),
        "person",
        "by",
        columns.comment,
        "at",
        "position",
        "previous",
        "digest",
    ]


class IncidentAdmin(ReadOnlyAdmin):
    list_display = ["id", "kind", "downstream", "agent", "reason", "opened_at", "closed_at"]
    list_filter = ["kind", "downstream"]
    list_select_related = ["downstream", "agent"]
    search_fields = ["=reason"]
    fields = ["kind", "downstream", "agent", "reason", "opened_at", "closed_at"]


def register() -> None:
    admin.site.register(Review, ReviewAdmin)
    admin.site.register(Decision, DecisionAdmin)
    admin.site.register(Comment, CommentAdmin)
    admin.site.register(Incident, IncidentAdmin)
