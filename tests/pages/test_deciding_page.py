"""Deciding on the page: what the person saw, what is true now, and what they typed."""

from typing import Any

import pytest

from actions.models import Intent
from reconciliation.models import Check, Decision, Review
from reconciliation.reviews import claiming
from tests import factories
from tests.flow.world import World
from tests.pages.cases import hidden_of, log_in, make_held, text_of

NOTE = "The customer sent us a <b>statement</b>."


def high_value(world: World, subject: str = "order-10", amount: str = "640.00") -> tuple[Intent, Review]:
    world.sandbox.order_fault(subject, "lose_response")
    intent = world.propose(subject, amount)
    world.send()
    world.check(intent)
    return world.read(intent), world.review(intent)


def vote(response: Any, choice: str = "confirm", **more: str) -> dict[str, str]:
    """What the browser sends when that button is pressed on the page `response`."""
    form = response.context["form"]
    entry = form["entry"].value()
    given = {"choice": choice, "reason": "ledger", "note": ""}
    if entry:
        given["entry"] = str(entry)
    for name in ("settled_amount", "settled_currency"):
        given[name] = form[name].value() or ""
    return given | hidden_of(response) | more


def test_confirming_settles_it_and_the_page_says_who_did(world: World) -> None:
    intent, review = high_value(world)
    client, _ = log_in(first_name="Mara")
    path = f"/reviews/{review.pk}/"
    response = client.post(path + "decide/", vote(client.get(path)), follow=True)
    page = text_of(response)
    assert response.redirect_chain == [(path, 302)]
    assert world.read(intent).status == "confirmed"
    assert "Decided: Confirm: it happened. It has taken effect." in page
    assert "It happened." in page
    assert "by Mara" in page
    assert 'name="choice"' not in page


def test_facts_that_changed_are_shown_nothing_is_decided_and_the_note_is_kept(world: World) -> None:
    intent, review = high_value(world)
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    before = client.get(path)
    world.sandbox.call(
        "POST",
        "/_control/entries",
        {"order": intent.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": intent.idempotency_key},
    )
    response = client.post(path + "decide/", vote(before, note=NOTE, reason="other"))
    page = text_of(response)
    assert response.status_code == 409
    assert "Nothing was decided: the facts have changed since you opened this page." in page
    assert "The customer sent us a &lt;b&gt;statement&lt;/b&gt;." in page
    assert world.read(intent).status == "unknown"
    assert not Decision.objects.exists()
    # The page carries the new facts, so that the same button can be pressed again, knowingly.
    assert hidden_of(response) != hidden_of(before)
    assert f'value="{hidden_of(response)["seen_digest"]}"' in page
    assert "ledger shows it more than once" in page or "2 entries" in page


def test_whoever_comes_second_is_told_by_whom_it_was_decided_and_keeps_the_note(world: World) -> None:
    _, review = high_value(world)
    path = f"/reviews/{review.pk}/"
    first, _ = log_in(first_name="Mara")
    second, _ = log_in()
    seen_by_second = second.get(path)
    first.post(path + "decide/", vote(first.get(path)))
    response = second.post(path + "decide/", vote(seen_by_second, note=NOTE))
    page = text_of(response)
    assert response.status_code == 409
    assert "Nothing was decided: this case is closed." in page
    assert "Mara decided it" in page
    assert response.context["comment_form"]["text"].value() == NOTE
    assert Decision.objects.filter(choice="confirm").count() == 1


def test_a_case_that_somebody_else_took_is_not_decided(world: World) -> None:
    intent, review = high_value(world)
    path = f"/reviews/{review.pk}/"
    client, _ = log_in()
    seen = client.get(path)
    claiming.claim(review.pk, person=factories.make_person(first_name="Jon"))
    response = client.post(path + "decide/", vote(seen, note=NOTE))
    assert response.status_code == 409
    assert "Jon has it until" in text_of(response)
    assert response.context["comment_form"]["text"].value() == NOTE
    assert world.read(intent).status == "unknown"


def test_two_people_agree_through_the_page(world: World) -> None:
    intent, review = high_value(world, "order-20", "7400.00")
    path = f"/reviews/{review.pk}/"
    first, _ = log_in(first_name="Mara")
    response = first.post(path + "decide/", vote(first.get(path)), follow=True)
    assert "A second, different person has to agree" in text_of(response)
    assert "You gave the first vote" in text_of(response)
    assert 'name="choice"' not in text_of(response)
    assert world.read(intent).status == "unknown"
    second, _ = log_in()
    page = second.get(path)
    assert "Mara gave the first vote" in text_of(page)
    second.post(path + "decide/", vote(page))
    assert world.read(intent).status == "confirmed"


def test_checking_again_looks_now_and_shows_it(world: World) -> None:
    intent, review = high_value(world)
    client, person = log_in()
    looks = Check.objects.count()
    response = client.post(f"/reviews/{review.pk}/check/", follow=True)
    assert "Looked just now: the ledger shows it." in text_of(response)
    assert Check.objects.count() == looks + 1
    newest = Check.objects.filter(intent=intent).latest("position")
    assert (newest.manual, newest.by) == (True, f"person:{person.pk}")


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"reason": ""}, "Choose a reason."),
        ({"choice": ""}, "Press one of the buttons below."),
        ({"choice": "explode"}, "explode is not one of the available choices."),
        ({"note": "x" * 4_001}, "at most 4000 characters"),
        ({"seen_version": "x"}, "whole number"),
    ],
)
def test_what_can_not_be_taken_is_said_and_nothing_is_decided(wrong: dict[str, str], words: str) -> None:
    review = make_held()
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    response = client.post(path + "decide/", vote(client.get(path), "approve") | wrong)
    assert response.status_code == 422
    assert words in text_of(response)
    assert not Decision.objects.exists()


@pytest.mark.django_db
def test_what_is_not_offered_is_refused_with_the_reason() -> None:
    review = make_held()
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    response = client.post(path + "decide/", vote(client.get(path), "uphold", note=NOTE))
    assert response.status_code == 422
    assert "Nothing was decided: this can&#x27;t be decided like that." in text_of(response)
    assert response.context["form"]["note"].value() == NOTE


@pytest.mark.django_db
def test_rejecting_cancels_it() -> None:
    review = make_held()
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    given = vote(client.get(path), "reject", reason="not_justified")
    assert "Rejected: it is not sent." in text_of(client.post(path + "decide/", given, follow=True))
    assert Intent.objects.get(pk=review.intent_id).status == "cancelled"
