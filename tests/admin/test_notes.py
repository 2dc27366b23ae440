"""Notes on intents."""

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import User
from django.test import Client

from actions import history, transitions
from actions.models import Evidence, EvidenceKind, Intent
from actions.statuses import Actor, Status
from tests.admin.conftest import browser_of
from tests.factories import make_intent, make_person

pytestmark = pytest.mark.django_db


def columns(intent: Intent) -> dict[str, object]:
    """All but the two that say where its history ends: a note is part of it."""
    found = Intent.objects.filter(pk=intent.pk).values().get()
    return {name: value for name, value in found.items() if name not in ("chain_length", "chain_head")}


def test_a_note_form_opened_before_the_worker_confirmed_touches_no_column_of_the_intent(
    page: Client, person: User
) -> None:
    intent = make_intent(to=Status.SUBMITTED)
    path = f"/admin/actions/intent/{intent.pk}/note/"
    assert page.get(path).status_code == 200
    transitions.apply(
        intent.pk,
        expected=Status.SUBMITTED,
        to=Status.CONFIRMED,
        actor=Actor.WORKER,
        actor_id="worker:1",
        reason="confirmed_by_answer",
        external_id="re_1",
        settled_by="answer",
        settled_amount_minor=5_000,
        settled_currency="EUR",
    )
    before = columns(intent)
    response = page.post(path, {"note": "The customer called.", "status": "failed", "amount_minor": "1"})
    assert response.status_code == 302
    assert columns(intent) == before
    note = Evidence.objects.get(intent=intent)
    assert (note.kind, note.source, note.text) == (EvidenceKind.NOTE, f"person:{person.pk}", "The customer called.")
    assert LogEntry.objects.get(object_id=intent.pk).user == person
    assert history.faults(Intent.objects.get(pk=intent.pk)) == []
    assert "The customer called." in page.get(f"/admin/actions/intent/{intent.pk}/change/").content.decode()


def test_a_double_click_stores_one_note_and_a_colleagues_same_words_another(page: Client) -> None:
    intent = make_intent()
    path = f"/admin/actions/intent/{intent.pk}/note/"
    for client in (page, page, browser_of(make_person("admin"))):
        client.post(path, {"note": "Card 4111 1111 1111 1111 was charged."})
    assert Evidence.objects.filter(intent=intent).count() == 2
    assert "4111 1111" not in Evidence.objects.filter(intent=intent)[0].text


@pytest.mark.parametrize("note", ["", "   ", "x" * 10_001])
def test_an_empty_or_overlong_note_is_an_error_of_the_form(page: Client, note: str) -> None:
    intent = make_intent()
    response = page.post(f"/admin/actions/intent/{intent.pk}/note/", {"note": note})
    assert response.context["form"].errors["note"]
    assert not Evidence.objects.exists()


def test_looking_at_the_note_page_stores_nothing_and_other_peoples_forms_are_refused(person: User) -> None:
    intent = make_intent()
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(person)
    path = f"/admin/actions/intent/{intent.pk}/note/"
    strict.get(path)
    assert strict.post(path, {"note": "forged"}).status_code == 403
    assert not Evidence.objects.exists()
