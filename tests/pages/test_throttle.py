"""Whoever guesses passwords waits, at the desk and in the admin; nobody else does."""

from datetime import timedelta
from typing import Any

import pytest
from axes.models import AccessAttempt
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from config.throttling import client_address
from tests.factories import make_person
from tests.pages.cases import log_in, text_of

pytestmark = pytest.mark.django_db
PASSWORD = "correct horse 1"
LOGINS = ["/login/", "/admin/login/"]


def somebody() -> User:
    person = make_person("admin")
    person.set_password(PASSWORD)
    person.save()
    return person


def guess(name: str, times: int, *, path: str = "/login/", password: str = "wrong", **meta: str) -> Any:
    client, answers = Client(), []
    for _ in range(times):
        answers.append(client.post(path, {"username": name, "password": password}, **meta))
    return answers[-1]


@pytest.mark.parametrize("path", LOGINS)
def test_after_ten_wrong_passwords_the_right_one_waits_too_and_the_page_says_so_calmly(path: str) -> None:
    person = somebody()
    assert guess(person.username, 9, path=path).status_code == 200
    for password in ("wrong", PASSWORD):
        answer = guess(person.username, 1, path=path, password=password)
        assert (answer.status_code, answer["Retry-After"]) == (429, "900")
        assert "in 15 minutes at the latest you can try again" in text_of(answer)
        assert person.username not in text_of(answer)


def test_both_logins_count_together() -> None:
    person = somebody()
    guess(person.username, 5, path="/login/")
    assert guess(person.username, 5, path="/admin/login/").status_code == 429


def test_a_name_that_nobody_has_waits_just_the_same() -> None:
    one, other = guess(somebody().username, 10), guess("nobody", 10)
    assert one.status_code == other.status_code == 429
    assert text_of(one) == text_of(other)


def test_neither_another_address_nor_another_name_waits() -> None:
    person, other = somebody(), somebody()
    guess(person.username, 10, REMOTE_ADDR="192.0.2.1")
    assert guess(person.username, 1, password=PASSWORD, REMOTE_ADDR="192.0.2.2").status_code == 302
    assert guess(other.username, 1, password=PASSWORD, REMOTE_ADDR="192.0.2.1").status_code == 302


def test_another_browser_or_a_made_up_proxy_is_no_way_around() -> None:
    person = somebody()
    for number in range(10):
        guess(person.username, 1, HTTP_USER_AGENT=f"browser {number}", HTTP_X_FORWARDED_FOR=f"192.0.2.{number}")
    assert guess(person.username, 1, password=PASSWORD).status_code == 429


def test_one_line_with_all_its_ipv6_addresses_is_one_address() -> None:
    person = somebody()
    for number in range(10):
        guess(person.username, 1, REMOTE_ADDR=f"2001:db8:0:7::{number:x}")
    assert guess(person.username, 1, password=PASSWORD, REMOTE_ADDR="2001:db8:0:7:8::1").status_code == 429
    assert guess(person.username, 1, password=PASSWORD, REMOTE_ADDR="2001:db8:0:8::1").status_code == 302


@pytest.mark.parametrize("path", LOGINS)
def test_a_name_longer_than_any_name_is_a_wrong_one_and_counts(path: str) -> None:
    assert guess("x" * 300, 9, path=path).status_code == 200
    assert guess("x" * 300, 1, path=path).status_code == 429


def test_after_fifteen_minutes_the_right_one_gets_in_and_trying_meanwhile_made_it_no_longer() -> None:
    person = somebody()
    guess(person.username, 10)
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=14, seconds=50))
    assert guess(person.username, 1).status_code == 429
    AccessAttempt.objects.update(attempt_time=timezone.now() - timedelta(minutes=15, seconds=5))
    assert guess(person.username, 1, password=PASSWORD).status_code == 302


def test_getting_in_begins_the_count_anew() -> None:
    person = somebody()
    for _ in range(2):
        guess(person.username, 9)
        assert guess(person.username, 1, password=PASSWORD).status_code == 302
    assert not AccessAttempt.objects.exists()


def test_what_is_kept_holds_no_password_and_no_token() -> None:
    Client().post("/login/?next=/x", {"username": "nobody", "password": "hunter2", "csrfmiddlewaretoken": "t0ken"})
    row = AccessAttempt.objects.get()
    assert not {"hunter2", "t0ken"} & set(f"{row.get_data} {row.post_data}".replace("=", " ").split())


def test_no_other_page_asks_the_database_for_it() -> None:
    client, _ = log_in()
    with CaptureQueriesContext(connection) as queries:
        for path in ("/", "/intents/", "/login/"):
            client.get(path)
    assert not [query for query in queries if "axes_" in query["sql"]]


@pytest.mark.parametrize(
    ("proxies", "forwarded", "found"),
    [
        (0, "192.0.2.1", "10.0.0.1"),
        (1, "198.51.100.7, 192.0.2.1", "192.0.2.1"),
        (2, "198.51.100.7, 192.0.2.1, 10.0.0.9", "192.0.2.1"),
        (1, "", None),
        (1, "<script>", None),
        (1, "2001:db8::1", "2001:db8::"),
        (1, "2001:db8:0:0:ffff::2", "2001:db8::"),
        (1, "2001:db8:0:1::1", "2001:db8:0:1::"),
        (1, "::ffff:192.0.2.1", "192.0.2.1"),
        (1, "fe80::1%eth0", "fe80::"),
    ],
)
def test_proxies_are_believed_as_far_as_they_are_ones_own(
    settings: Any, proxies: int, forwarded: str, found: str | None
) -> None:
    settings.LANDED_TRUSTED_PROXIES = proxies
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", headers={"X-Forwarded-For": forwarded})
    assert client_address(request) == found
