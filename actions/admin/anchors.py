"""When histories were anchored last, and why not: what the clock says of it, to be looked at."""

from django.contrib import admin

from actions.admin.read_only import ReadOnlyAdmin
from actions.models import Anchoring


class AnchoringAdmin(ReadOnlyAdmin):
    list_display = ["name", "written_at", "next_at", "problem"]
    fields = ["name", "digest", "written_at", "next_at", "problem"]


def register() -> None:
    admin.site.register(Anchoring, AnchoringAdmin)
