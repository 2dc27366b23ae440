"""Breakers: to be looked at, and to be told that a downstream is back."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from actions import breakers, times
from actions.admin.read_only import ReadOnlyAdmin
from actions.models import Breaker, Line


class BreakerAdmin(ReadOnlyAdmin):
    list_display = ["downstream", "line", "unanswered", "opened_at", "probe_at", "probes"]
    list_filter = ["line"]
    list_select_related = ["downstream"]
    fields = ["downstream", "line", "unanswered", "opened_at", "probe_at", "probes"]
    actions = ["probe_selected"]  # type: ignore[assignment]  # the one thing that can be done here

    def has_probe_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("actions.change_downstream")

    @admin.action(description="Send the next probe now", permissions=["probe"])
    def probe_selected(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """The breaker stays as it is; only an answer closes it."""
        now = times.now()
        for row in queryset.select_related("downstream"):
            if breakers.probe_now(row.downstream, Line(row.line), now=now):
                self.log_change(request, row, "Asked for a probe.")
                messages.success(request, f"{row.downstream}: the next probe may be made now.")
            else:
                messages.warning(request, f"{row.downstream}: its breaker is not open, so nothing waits for a probe.")


def register() -> None:
    admin.site.register(Breaker, BreakerAdmin)
