"""What hangs on an intent: attempts, transitions, evidence, the policy as it was. To be looked at."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin, ReadOnlyInline
from actions.models import Attempt, Evidence, Observation, PolicySnapshot, Transition, Usage
from actions.models.history import evidence_refs

_INLINE_TEXT = 2_000


def _evidence_links(row: Any) -> SafeString | str:
    """The evidence that a history row rests on, as links."""
    found = evidence_refs(row.evidence)
    links = ((shown.to_page(Evidence, number, f"{number}"), digest[:8]) for number, digest in found)
    return format_html_join(", ", "{} ({}…)", links) if found else "-"


evidence_links: shown.Column = admin.display(description="evidence")(_evidence_links)


class AttemptInline(ReadOnlyInline):
    model = Attempt
    fields = [
        "number",
        "executor",
        shown.text("worker"),
        "claimed_at",
        "phase",
        "result",
        "reason",
        "http_status",
        "closed_at",
        "closed_by",
        "late_result",
        "late_at",
    ]
    ordering = ["number"]


class TransitionInline(ReadOnlyInline):
    model = Transition
    verbose_name_plural = "history"
    fields = ["sequence", "from_status", "to_status", "actor", "actor_id", "reason", evidence_links, "at"]
    ordering = ["sequence"]


class ObservationInline(ReadOnlyInline):
    model = Observation
    fields = ["what", "by", evidence_links, "at"]
    ordering = ["position"]


class EvidenceInline(ReadOnlyInline):
    model = Evidence
    fields = [
        "kind",
        shown.text("source"),
        shown.raw_json("text", by=shown.OUTSIDE, most=_INLINE_TEXT),
        "created_at",
        "erased_at",
    ]
    ordering = ["id"]


class AttemptAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        shown.link_to("intent"),
        "number",
        "phase",
        "result",
        "reason",
        "claimed_at",
        "closed_by",
    ]
    list_filter = ["result", "closed_by", "executor"]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key"]
    fields = [
        shown.link_to("intent"),
        "number",
        "fence",
        "executor",
        shown.text("worker"),
        "claimed_at",
        "lease_until",
        "phase",
        "result",
        "reason",
        "http_status",
        "closed_at",
        "closed_by",
        "late_result",
        "late_reason",
        "late_at",
    ]
    inlines = [EvidenceInline]


class TransitionAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        shown.link_to("intent"),
        "sequence",
        "from_status",
        "to_status",
        "actor",
        "reason",
        "at",
    ]
    list_filter = ["to_status", "actor"]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key"]
    fields = [
        shown.link_to("intent"),
        "sequence",
        "from_status",
        "to_status",
        "actor",
        "actor_id",
        "reason",
        evidence_links,
        shown.raw_json("facts"),
        "at",
        "position",
        "previous",
        "digest",
    ]


class ObservationAdmin(ReadOnlyAdmin):
    list_display = ["id", shown.link_to("intent"), "what", "by", "at"]
    list_filter = ["what"]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key"]
    fields = [shown.link_to("intent"), "what", "by", evidence_links, "facts", "at", "position", "previous", "digest"]


class UsageAdmin(ReadOnlyAdmin):
    list_display = ["agent", "bucket", "since", "count", "count_before"]
    list_select_related = ["agent"]
    fields = ["agent", "bucket", "since", "count", "count_before"]


class EvidenceAdmin(ReadOnlyAdmin):
    list_display = ["id", shown.link_to("intent"), "kind", shown.text("source"), "created_at", "erased_at"]
    list_filter = ["kind"]
    search_fields = ["=intent__id", "=intent__subject", "=intent__idempotency_key"]
    fields = [
        shown.link_to("intent"),
        shown.link_to("attempt"),
        "kind",
        shown.text("source"),
        shown.raw_json("text", by=shown.OUTSIDE),
        "salt",
        "digest",
        "created_at",
        "erased_at",
    ]


class PolicySnapshotAdmin(ReadOnlyAdmin):
    list_display = ["digest", "kind", "created_at"]
    list_filter = ["kind"]
    list_select_related = ["kind"]
    ordering = ["-created_at"]
    search_fields = ["digest"]
    fields = ["digest", "kind", shown.raw_json("text"), "created_at"]


def register() -> None:
    admin.site.register(Attempt, AttemptAdmin)
    admin.site.register(Transition, TransitionAdmin)
    admin.site.register(Observation, ObservationAdmin)
    admin.site.register(Evidence, EvidenceAdmin)
    admin.site.register(Usage, UsageAdmin)
    admin.site.register(PolicySnapshot, PolicySnapshotAdmin)
