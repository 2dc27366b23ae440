"""The one admin site: nothing is deleted in bulk, people are kept, queues are for superusers."""

from __future__ import annotations  # the admin's classes take type arguments in stubs only

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from django.contrib.admin import AdminSite, ModelAdmin
from django.contrib.auth import get_user_model
from django.core.exceptions import PermissionDenied
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.template.response import TemplateResponse
from django.urls import URLPattern
from redis.exceptions import RedisError

View = Callable[..., HttpResponseBase]


class LandedAdminSite(AdminSite):
    site_header = "Landed"
    site_title = "Landed"
    index_title = "Administration"

    def __init__(self, name: str = "admin") -> None:
        super().__init__(name)
        # What history refers to stays; and bulk deletion goes around every model's own rules.
        self.disable_action("delete_selected")

    def login(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> HttpResponse:
        """Somebody else may log in over a session: whoever had it has gone, and gives back what they worked on."""
        before = request.user
        pk = before.pk
        response = super().login(request, extra_context)
        if pk is not None and request.user.pk != pk:
            _gone(pk)
        return response

    def logout(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        pk = request.user.pk if request.method == "POST" else None
        response = super().logout(request, extra_context)
        if pk is not None:
            _gone(pk)
        return response

    def register(
        self,
        model_or_iterable: Any,
        admin_class: type[ModelAdmin[Any]] | None = None,
        **options: Any,
    ) -> None:
        """Registers as usual; what installed packages bring is held to this site's rules."""
        models: Iterable[type[Model]] = (
            [model_or_iterable] if isinstance(model_or_iterable, type) else model_or_iterable
        )
        for model in models:
            limit = _LIMITS.get(model._meta.label) or _LIMITS.get(model._meta.app_label)
            super().register(model, limit(admin_class or ModelAdmin) if limit else admin_class, **options)


def _gone(person_id: int) -> None:
    from reconciliation.reviews import claiming  # noqa: PLC0415  models must be loaded first

    claiming.release_all(person=get_user_model().objects.get(pk=person_id))


def _is_superuser(request: HttpRequest) -> bool:
    return request.user.is_active and bool(getattr(request.user, "is_superuser", False))


def _keeps_people(admin_class: type[Any]) -> type[Any]:
    """Users are deactivated, not deleted, as history names them; and only a superuser makes superusers."""

    class People(admin_class):  # type: ignore[misc]  # its base is only known here
        def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return False

        def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            above = obj is not None and obj.is_superuser and not _is_superuser(request)
            return bool(super().has_change_permission(request, obj)) and not above

        def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
            found = super().get_readonly_fields(request, obj)
            return found if _is_superuser(request) else [*found, "is_superuser", "user_permissions", "groups"]

        def user_change_password(self, request: HttpRequest, id: str, form_url: str = "") -> HttpResponse:
            # Whoever could set another's password, or give roles, could be both of two people.
            if not _is_superuser(request):
                raise PermissionDenied
            found: HttpResponse = super().user_change_password(request, id, form_url)
            return found

    return People


def _roles_by_superusers(admin_class: type[Any]) -> type[Any]:
    """Groups carry the permissions to decide: others may look at them, superusers change them."""

    class Roles(admin_class):  # type: ignore[misc]  # its base is only known here
        def has_add_permission(self, request: HttpRequest) -> bool:
            return _is_superuser(request)

        def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return _is_superuser(request)

        def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return False

    return Roles


def _for_superusers(admin_class: type[Any]) -> type[Any]:
    """Hides an admin class, and every address below it, from everyone but superusers.

    django-rq asks for no more than staff, and its JSON statistics for no more than a token. Queues are
    doorbells here: emptying one loses nothing, but what runs is nobody else's business.
    """

    class ForSuperusers(admin_class):  # type: ignore[misc]  # its base is only known here
        def has_module_permission(self, request: HttpRequest) -> bool:
            return _is_superuser(request)

        def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return self.has_module_permission(request)

        def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return self.has_module_permission(request)

        def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return False

        def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
            return False

        def get_urls(self) -> list[URLPattern]:
            found: list[URLPattern] = super().get_urls()
            for pattern in found:
                pattern.callback = self.admin_site.admin_view(_hide(pattern.callback))
            return found

    return ForSuperusers


def _hide(view: View) -> View:
    @wraps(view)
    def seen_by_superusers(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not _is_superuser(request):
            raise Http404
        try:
            return view(request, *args, **kwargs)
        except RedisError:
            return HttpResponse(
                "Redis doesn't answer. Nothing is lost: what is due is in the database, and the clock finds it.",
                status=503,
                content_type="text/plain",
            )

    return seen_by_superusers


# By model, or by app.
_LIMITS: dict[str, Callable[[type[Any]], type[Any]]] = {
    "auth.User": _keeps_people,
    "auth.Group": _roles_by_superusers,
    "django_rq": _for_superusers,
}
