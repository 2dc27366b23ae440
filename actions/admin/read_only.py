"""Pages that show and never change, at a cost that doesn't follow the size of the tables."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from actions import visible

if TYPE_CHECKING:
    _ModelAdmin = admin.ModelAdmin[Any]
    _Inline = admin.TabularInline[Any, Any]
    _Pages = Paginator[Any]
else:
    _ModelAdmin, _Inline, _Pages = admin.ModelAdmin, admin.TabularInline, Paginator


class CappedPaginator(_Pages):
    """Counts no further than `MOST`: whoever wants what is older searches or filters."""

    MOST = 2_000

    @cached_property
    def count(self) -> int:
        found: Any = self.object_list
        return int(found.order_by()[: self.MOST].count())


class _Newest(ChangeList):
    """Ignores `?o=`: sorting by a column without an index would read the whole table."""

    def get_ordering(self, request: HttpRequest, queryset: QuerySet[Any]) -> list[Any]:
        return list(self.model_admin.get_ordering(request))


class NeverDelete:
    """History refers to it."""

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class _ReadOnly(NeverDelete):
    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


class ReadOnlyAdmin(_ReadOnly, _ModelAdmin):
    """Newest first by primary key, which is the one order that has an index on every table."""

    ordering = ["-pk"]
    sortable_by = ()
    actions = None
    list_per_page = 50
    list_max_show_all = 0
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER
    paginator = CappedPaginator
    change_form_template = "admin/landed/read_only.html"

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return _Newest

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        # An entry's own name can hold what a downstream sent.
        row = self.get_object(request, object_id)
        title = {"subtitle": visible.plain(str(row))} if row is not None else {}
        return super().change_view(request, object_id, form_url, title | (extra_context or {}))


class ReadOnlyInline(_ReadOnly, _Inline):
    extra = 0
    can_delete = False
    show_change_link = True
    related: tuple[str, ...] = ()

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.fields or ()

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        found = super().get_queryset(request)
        return found.select_related(*self.related) if self.related else found
