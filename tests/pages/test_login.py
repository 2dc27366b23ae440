"""Who may come to the desk."""

import pytest
from django.test import Client

from tests.factories import make_person
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db


def test_whoever_is_not_logged_in_is_led_to_the_login_and_back() -> None:
    person = make_person("reviewer")
    person.set_password("correct horse 1")
    person.save()
    client = Client()
    response = client.get("/?tab=mine")
    assert (response.status_code, response["Location"]) == (302, "/login/?next=/%3Ftab%3Dmine")
    assert client.get(response["Location"]).status_code == 200
    given = {"username": person.username, "password": "correct horse 1", "next": "/?tab=mine"}
    assert client.post("/login/", given)["Location"] == "/?tab=mine"


def test_a_wrong_password_is_said_plainly() -> None:
    response = Client().post("/login/", {"username": "nobody", "password": "wrong"})
    assert response.status_code == 200
    assert "Please enter a correct username and password" in text_of(response)


def test_the_login_never_leads_to_another_site() -> None:
    person = make_person("reviewer")
    person.set_password("correct horse 1")
    person.save()
    given = {"username": person.username, "password": "correct horse 1", "next": "https://evil.example/"}
    assert Client().post("/login/", given)["Location"] == "/"


def test_htmx_is_sent_to_the_login_as_a_whole_page() -> None:
    response = Client().get("/news/", headers={"HX-Request": "true"})
    assert response.status_code == 200
    assert response["HX-Redirect"].startswith("/login/")


def test_after_a_login_forced_by_a_post_the_case_is_shown_and_nothing_was_done() -> None:
    review = make_case()
    response = Client().post(f"/reviews/{review.pk}/take/")
    assert response["Location"] == f"/login/?next=/reviews/{review.pk}/"
    review.refresh_from_db()
    assert review.holder is None


@pytest.mark.parametrize("path", ["/", "/intents/", "/news/"])
def test_an_account_without_a_role_is_told_so(path: str) -> None:
    client, person = log_in("reviewer")
    person.user_permissions.clear()
    response = client.get(path)
    assert response.status_code == 403
    assert "no role at the desk" in text_of(response)


@pytest.mark.parametrize("role", ["reviewer", "supervisor", "auditor"])
def test_every_role_sees_the_desk_without_being_staff(role: str) -> None:
    client, person = log_in(role)
    assert not person.is_staff
    assert client.get("/").status_code == 200


def test_logging_out_takes_a_post() -> None:
    client, _ = log_in()
    assert client.get("/logout/").status_code == 405
    assert client.post("/logout/")["Location"] == "/login/"
    assert client.get("/").status_code == 302


def test_pages_are_kept_by_nobody() -> None:
    client, _ = log_in()
    assert client.get("/")["Cache-Control"] == "private, no-store"


def test_what_is_not_there_looks_like_the_rest() -> None:
    client, _ = log_in()
    response = client.get("/reviews/999999999999999999999/")
    assert response.status_code == 404
    assert "There is nothing here" in text_of(response)
