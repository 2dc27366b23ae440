"""Stops: to be looked at, and to be lifted; they are placed at the desk."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from actions import stops
from actions.admin import shown
from actions.admin.read_only import ReadOnlyAdmin
from actions.models import Stop


class StopAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "scope",
        shown.text("value"),
        "kind",
        shown.text("reason"),
        "placed_by",
        "placed_at",
        "lifted_at",
    ]
    list_filter = ["scope", ("lifted_at", admin.EmptyFieldListFilter), "kind"]
    list_select_related = ["kind"]
    search_fields = ["=value", "=key", "=family"]
    fields = [
        "scope",
        shown.text("value"),
        shown.text("key"),
        "kind",
        shown.text("reason"),
        "placed_by",
        "placed_at",
        "lifted_by",
        "lifted_at",
        "erased_at",
    ]
    change_list_template = "admin/landed/stops.html"
    actions: Any = ["lift_selected"]

    def has_lift_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("actions.lift_stop")

    @admin.action(description="Lift the selected stops", permissions=["lift"])
    def lift_selected(self, request: HttpRequest, chosen: QuerySet[Stop]) -> None:
        """What they held still waits for its own approval."""
        active = list(chosen.filter(lifted_at=None))
        for stop in active:
            stops.lift(stop.pk, actor_id=f"person:{request.user.pk}")
            self.log_change(request, stop, "Lifted.")
        self.message_user(request, f"Lifted: {len(active)}.", messages.SUCCESS)


def register() -> None:
    admin.site.register(Stop, StopAdmin)
