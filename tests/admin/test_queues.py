"""django-rq's pages are for superusers."""

from typing import Any

import pytest
from django.contrib import admin
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import URLPattern

from tests.admin.conftest import browser_of
from tests.factories import make_person

pytestmark = pytest.mark.django_db


def _patterns() -> list[URLPattern]:
    (model_admin,) = (found for model, found in admin.site._registry.items() if model._meta.app_label == "django_rq")
    return model_admin.get_urls()


PATHS = [
    "",
    "stats.json",
    "stats.json/sometoken",
    "queues/0/",
    "queues/0/failed/",
    "queues/0/empty/",
    "queues/0/some-job/delete/",
    "queues/actions/0/",
    "workers/0/",
    "cron-schedulers/0/x/",
]


@pytest.mark.parametrize("path", PATHS)
def test_staff_see_nothing_of_the_queues(path: str, settings: Any) -> None:
    settings.RQ_API_TOKEN = "sometoken"
    staff = make_person("admin")
    staff.user_permissions.add(*Permission.objects.all())
    page = browser_of(staff)
    assert page.get(f"/admin/django_rq/dashboard/{path}").status_code == 404
    assert page.post(f"/admin/django_rq/dashboard/{path}").status_code == 404


@pytest.mark.parametrize("path", PATHS)
def test_strangers_are_sent_to_the_login_whatever_token_they_show(path: str, settings: Any) -> None:
    settings.RQ_API_TOKEN = "sometoken"
    response = Client(headers={"Authorization": "Bearer sometoken"}).get(f"/admin/django_rq/dashboard/{path}")
    assert response.status_code == 302
    assert response["Location"].startswith("/admin/login/")


def test_every_address_below_the_dashboard_is_behind_the_same_door() -> None:
    assert len(_patterns()) > 20
    for pattern in _patterns():
        assert "seen_by_superusers" in _names(pattern.callback), pattern


def _names(view: Any) -> str:
    found = ""
    while view is not None:
        found += (
            view.__code__.co_qualname if hasattr(view, "__code__") and hasattr(view.__code__, "co_qualname") else ""
        )
        view = getattr(view, "__wrapped__", None)
    return found


def test_without_redis_a_superuser_is_told_that_nothing_is_lost(settings: Any) -> None:
    nowhere = {"URL": "unix:///nowhere/redis.sock", "SERIALIZER": "rq.serializers.JSONSerializer"}
    settings.RQ_QUEUES = {"send": nowhere}
    root = make_person("admin", is_superuser=True)
    response = browser_of(root).get("/admin/django_rq/dashboard/queues/0/")
    assert response.status_code == 503
    assert b"Nothing is lost" in response.content


def test_staff_see_no_link_and_a_superuser_does() -> None:
    staff = make_person("admin")
    staff.user_permissions.add(*Permission.objects.all())
    assert "django_rq" not in browser_of(staff).get("/admin/").content.decode()
    assert browser_of(staff).get("/admin/django_rq/").status_code == 404
    root = make_person("admin", is_superuser=True)
    assert "django_rq" in browser_of(root).get("/admin/").content.decode()
    assert browser_of(root).get("/admin/django_rq/dashboard/").status_code == 200
