"""Webhooks that arrived, and what became of them. To be looked at."""

from typing import Any

from django.contrib import admin
from django.utils.html import format_html_join
from django.utils.safestring import SafeString

from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin
from reconciliation.models import Delivery, LedgerEntry


def _entries(row: Any) -> SafeString | str:
    found = row.about_data.get("entries", [])
    return format_html_join(", ", "{}", ((shown.to_page(LedgerEntry, pk, f"{pk}"),) for pk in found)) or "-"


_entry_links: shown.Column = admin.display(description="entries")(_entries)


class DeliveryAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "downstream",
        shown.text("topic", by=shown.OUTSIDE),
        "received_at",
        "outcome",
        "tries",
        "next_try_at",
    ]
    list_filter = ["downstream", "outcome"]
    list_select_related = ["downstream"]
    search_fields = ["=delivery_id"]
    fields = [
        "downstream",
        shown.text("delivery_id", by=shown.OUTSIDE),
        shown.text("topic", by=shown.OUTSIDE),
        "sent_at",
        "received_at",
        shown.raw_json("about", by=shown.OUTSIDE),
        _entry_links,
        shown.link_to("evidence"),
        "outcome",
        "applied_at",
        "tries",
        "next_try_at",
    ]


def register() -> None:
    admin.site.register(Delivery, DeliveryAdmin)
