"""What was done in the admin, for everyone who may see it."""

from django.contrib import admin
from django.contrib.admin.models import LogEntry

from actions import visible
from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin


class LogEntryAdmin(ReadOnlyAdmin):
    list_display = ["action_time", "user", "content_type", shown.text("object_repr"), "change"]
    list_filter = ["action_flag", "content_type"]
    list_select_related = ["user", "content_type"]
    search_fields = ["=object_id", "=user__username"]
    fields = [
        "action_time",
        "user",
        "content_type",
        "object_id",
        shown.text("object_repr"),
        "action_flag",
        "change",
    ]

    @admin.display(description="what was changed")
    def change(self, entry: LogEntry) -> str:
        return visible.visible(str(entry.get_change_message()))


def register() -> None:
    admin.site.register(LogEntry, LogEntryAdmin)
