"""Where a decision leads, as the person prefers, and that it can be taken back from there."""

from typing import Any

import pytest

from reconciliation.models import AfterDeciding, Decision, Preferences
from reconciliation.reviews import preferences
from tests import factories
from tests.desk.steps import log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.pages.cases import make_case


def prefer(person: Any, likes: AfterDeciding) -> None:
    Preferences.objects.create(person=person, after_deciding=likes)


@pytest.mark.django_db
def test_whoever_chose_nothing_stays_and_nothing_is_stored() -> None:
    person = factories.make_person()
    assert preferences.of(person).after_deciding == AfterDeciding.STAY
    assert not Preferences.objects.exists()


def test_one_stays_on_the_case(world: World) -> None:
    _, review = lost_answer(world)
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    assert client.post(path + "decide/", press(client.get(path))).url == path


def test_the_next_case_is_taken_and_the_last_one_can_be_taken_back_from_there(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    _, review = lost_answer(world)
    following = make_case(world.kind)
    client, person = log_in()
    prefer(person, AfterDeciding.NEXT)
    path = f"/reviews/{review.pk}/"
    answer = client.post(path + "decide/", press(client.get(path)))
    assert answer.url == f"/reviews/{following.pk}/"
    assert read(following).holder == person
    page = text_of(client.get(answer.url))
    assert "Decided: Confirm: it happened" in page
    assert "order-10" in page
    assert f'action="/reviews/{review.pk}/undo/"' in page
    row = Decision.objects.get()
    back = client.post(f"/reviews/{review.pk}/undo/", {"decision": str(row.pk)}, follow=True)
    assert back.redirect_chain == [(path, 302)]
    assert "Taken back: nothing was decided." in text_of(back)
    assert f'action="/reviews/{review.pk}/undo/"' not in text_of(client.get("/"))


def test_back_to_the_queue_with_the_decision_still_in_reach(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    _, review = lost_answer(world)
    client, person = log_in()
    prefer(person, AfterDeciding.QUEUE)
    path = f"/reviews/{review.pk}/"
    answer = client.post(path + "decide/", press(client.get(path)))
    assert answer.url == "/"
    for where in ("/", "/intents/", "/ledger/"):
        assert f'action="/reviews/{review.pk}/undo/"' in text_of(client.get(where))


def test_a_page_that_htmx_asks_for_is_left_and_not_put_under_the_old_address(world: World) -> None:
    _, review = lost_answer(world)
    client, person = log_in()
    prefer(person, AfterDeciding.QUEUE)
    path = f"/reviews/{review.pk}/"
    headers = {"HX-Request": "true", "HX-Boosted": "true"}
    answer = client.post(path + "decide/", press(client.get(path)), headers=headers)
    assert answer.headers["HX-Redirect"] == "/"


def test_when_no_case_is_left_the_queue_says_so(world: World) -> None:
    _, review = lost_answer(world)
    client, person = log_in()
    prefer(person, AfterDeciding.NEXT)
    path = f"/reviews/{review.pk}/"
    page = text_of(client.post(path + "decide/", press(client.get(path)), follow=True))
    assert "Decided: Confirm: it happened · Refund" in page
    assert "No case is free at the moment." in page
