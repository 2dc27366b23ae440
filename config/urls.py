"""Every address that Landed answers at."""

from django.contrib import admin
from django.db import DatabaseError, connection
from django.http import HttpRequest, HttpResponse
from django.urls import include, path

from config.api import urls as api_urls


def healthz(request: HttpRequest) -> HttpResponse:
    """Whether this process answers and reaches its database. Redis is left out: without it work is late, not lost."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            cursor.fetchone()
    except DatabaseError:
        return HttpResponse("database unavailable", status=503, content_type="text/plain")
    return HttpResponse("ok", content_type="text/plain")


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("api/v1/", api_urls),
    path("admin/", admin.site.urls),
    path("", include("reconciliation.urls")),
]

handler400 = "actions.api.handlers.bad_request"
handler403 = "actions.api.handlers.permission_denied"
handler404 = "actions.api.handlers.not_found"
handler500 = "actions.api.handlers.server_error"
