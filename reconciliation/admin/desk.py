"""What belongs to the people at the desk, to be looked at. A note that is not sent yet is its writer's alone."""

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest

from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin
from reconciliation.models import Attachment, Notice, Preferences
from reconciliation.reviews import attaching


class AttachmentAdmin(ReadOnlyAdmin):
    """Its bytes are handed out, and erased, at the desk."""

    list_display = ["id", shown.link_to("review"), shown.link_to("intent"), "person", "size", "at", "erased_at"]
    list_select_related = ["person"]
    search_fields = ["=intent__id", "=intent__subject", "=person__username", "=digest"]
    fields = [
        shown.link_to("review"),
        shown.link_to("intent"),
        "person",
        shown.long_text("name"),
        "media_type",
        "size",
        "digest",
        "at",
        "erased_at",
        "as_added",
    ]

    @admin.display(description="is it what was added?")
    def as_added(self, row: Attachment) -> str:
        return attaching.fault(row) or "Yes."

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        return super().get_queryset(request).defer("content")


class NoticeAdmin(ReadOnlyAdmin):
    list_display = ["id", "kind", "to", "created_at", "tries", "next_try_at", "sent_at", "problem"]
    list_filter = ["kind"]
    list_select_related = ["to"]
    search_fields = ["=once", "=to__username"]
    fields = [
        "kind",
        "once",
        shown.link_to("review"),
        shown.link_to("incident"),
        "to",
        "created_at",
        "tries",
        "next_try_at",
        "sent_at",
        shown.long_text("problem"),
    ]


class PreferencesAdmin(ReadOnlyAdmin):
    list_display = ["person", "after_deciding", "time_zone", "locale", "theme", "shortcuts", "notices"]
    list_select_related = ["person"]
    search_fields = ["=person__username"]
    fields = ["person", "after_deciding", "time_zone", "locale", "theme", "shortcuts", "notices"]


def register() -> None:
    admin.site.register(Attachment, AttachmentAdmin)
    admin.site.register(Notice, NoticeAdmin)
    admin.site.register(Preferences, PreferencesAdmin)
