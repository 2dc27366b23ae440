"""Stops in the admin: looked at, lifted by whoever may, placed at the desk."""

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from actions import stops
from actions.models import Intent, Stop
from tests.admin.conftest import browser_of, url
from tests.factories import make_intent, make_person

pytestmark = pytest.mark.django_db

LIST = "/admin/actions/stop/"


def place(value: str = "c-5") -> Stop:
    return stops.place("customer", value, reason="Mule account", actor_id="person:1")


def lift(page: Client, *chosen: Stop) -> Any:
    given = {"action": "lift_selected", "_selected_action": [stop.pk for stop in chosen]}
    return page.post(LIST, given, follow=True)


def test_an_administrator_lifts_stops_and_nothing_is_released(page: Client, person: User) -> None:
    intent = make_intent(customer="c-5")
    first, second, lifted = place(), place("c-6"), place("c-7")
    before = stops.lift(lifted.pk, actor_id="person:1")
    assert "Lifted: 2." in lift(page, first, second, lifted).content.decode()
    assert not Stop.objects.filter(lifted_at=None).exists()
    assert Stop.objects.get(pk=first.pk).lifted_by == f"person:{person.pk}"
    assert Stop.objects.get(pk=lifted.pk).lifted_by == before.lifted_by
    assert Intent.objects.get(pk=intent.pk).status == "held"


def test_whoever_may_only_look_is_offered_nothing_and_lifts_nothing() -> None:
    stop = place()
    viewer = make_person("auditor", is_staff=True)
    viewer.user_permissions.add(Permission.objects.get(codename="view_stop"))
    page = browser_of(viewer)
    html = page.get(LIST).content.decode()
    assert "Mule account" in html
    assert "lift_selected" not in html
    lift(page, stop)
    assert Stop.objects.get().lifted_at is None


def test_a_stop_is_neither_written_nor_changed_here_and_the_list_leads_to_the_desk(page: Client) -> None:
    stop = place()
    assert 'href="/stops/"' in page.get(LIST).content.decode()
    assert page.post(LIST + "add/", {"scope": "customer", "value": "c-6", "reason": "x"}).status_code == 403
    assert page.post(url(stop), {"value": "c-6"}).status_code == 403
    assert "Mule account" in page.get(url(stop)).content.decode()
    assert Stop.objects.get().value == "c-5"
