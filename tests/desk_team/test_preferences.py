"""The preferences page: one's own, kept, and in force at once."""

import pytest
from django.test import Client

from reconciliation.models import Preferences
from reconciliation.reviews import preferences
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db

CHOSEN = {
    "time_zone": "Europe/Berlin",
    "locale": "de_DE",
    "theme": "dark",
    "after_deciding": "next",
    "notices": "on",
}


def test_what_is_chosen_is_kept_and_holds_at_once() -> None:
    client, person = log_in()
    assert client.post("/preferences/keep/", CHOSEN).url == "/preferences/"
    kept = preferences.of(person)
    assert (kept.time_zone, kept.locale, kept.theme) == ("Europe/Berlin", "de_DE", "dark")
    assert (kept.after_deciding, kept.shortcuts, kept.notices) == ("next", False, True)
    page = text_of(client.get("/preferences/"))
    assert '<html lang="en" data-theme="dark">' in page
    assert 'value="Europe/Berlin" selected' in page
    case = text_of(client.get(f"/reviews/{make_case(amount_minor=64_000).pk}/"))
    assert "640,00\u00a0€" in case


def test_who_chose_nothing_gets_the_systems_theme_and_no_row() -> None:
    client, _ = log_in()
    assert '<html lang="en">' in text_of(client.get("/preferences/"))
    assert not Preferences.objects.exists()


@pytest.mark.parametrize(
    "wrong",
    [{"time_zone": "Mars/Olympus"}, {"locale": "xx"}, {"theme": "pink"}, {"after_deciding": ""}, {"theme": '"><b>'}],
)
def test_what_is_not_on_offer_is_refused_and_nothing_is_kept(wrong: dict[str, str]) -> None:
    client, _ = log_in()
    answer = client.post("/preferences/keep/", CHOSEN | wrong)
    assert answer.status_code == 422
    assert 'role="alert"' in text_of(answer)
    assert not Preferences.objects.exists()


def test_nobody_sets_somebody_elses() -> None:
    client, person = log_in()
    _, other = log_in()
    client.post("/preferences/keep/", CHOSEN | {"person": str(other.pk), "id": "1"})
    assert [kept.person_id for kept in Preferences.objects.all()] == [person.pk]


def test_an_auditor_has_preferences_too() -> None:
    client, person = log_in("auditor")
    assert client.post("/preferences/keep/", CHOSEN).status_code == 302
    assert preferences.of(person).theme == "dark"


def test_a_get_keeps_nothing() -> None:
    client, _ = log_in()
    assert client.get("/preferences/keep/", CHOSEN).status_code == 405
    assert not Preferences.objects.exists()


def test_a_post_without_the_sites_own_token_is_refused() -> None:
    _, person = log_in()
    client = Client(enforce_csrf_checks=True)
    client.force_login(person)
    assert client.post("/preferences/keep/", CHOSEN).status_code == 403
    assert not Preferences.objects.exists()


def test_one_persons_likes_are_not_anothers() -> None:
    client, _ = log_in()
    client.post("/preferences/keep/", CHOSEN)
    other, _ = log_in()
    assert '<html lang="en">' in text_of(other.get("/preferences/"))
