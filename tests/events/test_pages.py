"""Endpoints in the admin: a secret is shown once, deliveries are looked at and sent again."""

import re
from typing import Any

import pytest
from django.test import Client
from standardwebhooks import Webhook

from actions.models import Endpoint, Event
from tests.admin.conftest import browser_of, errors, save
from tests.events.making import deliver, make_endpoint, only
from tests.events.receiving import Receiver
from tests.events.test_delivering import tell
from tests.factories import make_agent, make_person

pytestmark = pytest.mark.django_db

LIST = "/admin/actions/endpoint/"


@pytest.fixture
def page(db: None) -> Client:
    return browser_of(make_person("admin"))


def secrets_in(response: Any) -> list[str]:
    return re.findall(r"whsec_[A-Za-z0-9+/=]+", response.content.decode())


def add(page: Client, url: str, **fields: Any) -> Any:
    body = {"agent": make_agent().pk, "url": url, "types": ["intent.settled", "intent.unknown"]} | fields
    return page.post(f"{LIST}add/", body, follow=True)


def test_adding_one_shows_its_secret_once_and_signs_with_it(page: Client, receiver: Receiver) -> None:
    answer = add(page, receiver.url)
    (secret,) = secrets_in(answer)
    endpoint = Endpoint.objects.get()
    assert endpoint.types == ["intent.settled", "intent.unknown"]
    for path in (LIST, f"{LIST}{endpoint.pk}/change/", f"{LIST}{endpoint.pk}/history/"):
        assert secrets_in(page.get(path)) == []
    tell(endpoint.agent)
    deliver()
    Webhook(secret).verify(receiver.came[0].body, receiver.came[0].headers)


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/latest", "https://0x7f000001/", "https://a:b@c.example/", "x"]
)
def test_an_address_inside_is_refused_in_the_form(page: Client, url: str) -> None:
    assert "url" in errors(add(page, url))
    assert not Endpoint.objects.exists()


def test_rotating_shows_the_next_secret_once(page: Client, receiver: Receiver) -> None:
    endpoint, old = make_endpoint(make_agent(), receiver.url)
    (new,) = secrets_in(save(page, endpoint, rotate="on"))
    endpoint.refresh_from_db()
    assert (new != old, endpoint.secret_version, endpoint.previous_until is not None) == (True, 2, True)
    save(page, endpoint, rotate="on", at_once="on")
    endpoint.refresh_from_db()
    assert (endpoint.secret_version, endpoint.previous_until) == (3, None)
    assert "at_once" in errors(save(page, endpoint, at_once="on"))


def test_pausing_keeps_what_happens_and_resuming_tells_it(page: Client, receiver: Receiver) -> None:
    endpoint, _ = make_endpoint(make_agent(), receiver.url)
    form = save(page, endpoint, active="")
    endpoint.refresh_from_db()
    assert (endpoint.active, form.status_code) == (False, 200)
    tell(endpoint.agent)
    assert deliver() == 0
    Endpoint.objects.update(inactive_because="it answered 410 Gone", failures=3)
    save(page, endpoint, active="on")
    endpoint.refresh_from_db()
    assert (endpoint.active, endpoint.inactive_because, endpoint.failures) == (True, "", 0)
    assert deliver() == 1


def test_a_delivery_is_sent_again_on_request_and_so_is_what_was_given_up(page: Client, receiver: Receiver) -> None:
    endpoint, _ = make_endpoint(make_agent(), receiver.url)
    tell(endpoint.agent)
    deliver()
    again = {"action": "replay_selected", "_selected_action": [only().pk]}
    assert b"Sent again: 1." in page.post("/admin/actions/eventdelivery/", again, follow=True).content
    assert deliver() == 1
    receiver.status = 410
    page.post("/admin/actions/eventdelivery/", again)
    deliver()
    assert only().state == "given_up"
    Endpoint.objects.update(active=True, not_before=None)
    receiver.status = 200
    all_of_it = {"action": "replay_given_up", "_selected_action": [endpoint.pk]}
    assert b"Sent again: 1." in page.post(LIST, all_of_it, follow=True).content
    assert deliver() == 1
    assert len({one.headers["webhook-id"] for one in receiver.came}) == 1


def test_the_log_shows_what_a_receiver_answered_and_takes_none_of_it_for_markup(
    page: Client, receiver: Receiver
) -> None:
    endpoint, _ = make_endpoint(make_agent(), receiver.url)
    tell(endpoint.agent)
    receiver.status, receiver.body = 500, b"<script>alert(1)</script>"
    deliver()
    row = only()
    shown = page.get(f"/admin/actions/eventdelivery/{row.pk}/change/").content.decode()
    assert "&lt;script&gt;alert(1)" in shown
    assert "<script>alert(1)" not in shown
    assert "HTTP 500" in shown
    for path in ("eventdelivery/", "deliverytry/", "event/", f"deliverytry/{row.tries.get().pk}/change/"):
        assert page.get(f"/admin/actions/{path}").status_code == 200
    assert page.get(f"/admin/actions/event/{Event.objects.first().pk}/change/").status_code == 200  # type: ignore[union-attr]


def test_who_may_not_replay_is_not_offered_it(receiver: Receiver) -> None:
    person = make_person("admin")
    person.user_permissions.remove(*person.user_permissions.filter(codename="replay_eventdelivery"))
    endpoint, _ = make_endpoint(make_agent(), receiver.url)
    tell(endpoint.agent)
    deliver()
    browser = browser_of(person)
    browser.post("/admin/actions/eventdelivery/", {"action": "replay_selected", "_selected_action": [only().pk]})
    assert only().state == "delivered"
    assert b"replay_selected" not in browser.get("/admin/actions/eventdelivery/").content
