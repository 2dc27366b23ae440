"""Above the second limit two different people agree on the same payload and the same evidence."""

from typing import Any

import pytest

from actions import history
from actions.models import Intent
from reconciliation.models import Decision, Review
from tests import factories
from tests.desk.steps import again, log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.ledger.books import orphan
from tests.pages.cases import make_held

HIGH = "7400.00"


def vote(client: Any, review: Review, choice: str = "confirm", **more: str) -> Any:
    path = f"/reviews/{review.pk}/"
    return client.post(path + "decide/", press(client.get(path), choice, **more), follow=True)


def another_entry(world: World, intent: Intent) -> None:
    entry = {"order": intent.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": intent.idempotency_key}
    world.sandbox.call("POST", "/_control/entries", entry)


@pytest.mark.parametrize("role", ["reviewer", "supervisor"])
def test_the_same_person_is_one_person_in_two_sessions_whatever_their_role(world: World, role: str) -> None:
    intent, review = lost_answer(world, amount=HIGH)
    client, person = log_in(role)
    path = f"/reviews/{review.pk}/"
    page = client.get(path)
    vote(client, review)
    elsewhere = again(person)
    assert 'name="choice"' not in text_of(elsewhere.get(path))
    answer = elsewhere.post(path + "decide/", press(page, "fail", note="x"))
    assert "a different person has to give the second" in text_of(answer)
    assert world.read(intent).status == "unknown"


def test_two_people_agree_and_it_takes_effect(world: World) -> None:
    intent, review = lost_answer(world, amount=HIGH)
    vote(log_in()[0], review)
    page = text_of(vote(log_in()[0], review))
    assert "It has taken effect." in page
    assert world.read(intent).status == "confirmed"
    assert history.faults(world.read(intent)) == []


def test_a_changed_verdict_voids_the_first_vote_and_its_voter_is_told(world: World) -> None:
    intent, review = lost_answer(world, amount=HIGH)
    first, person = log_in(first_name="Mara")
    vote(first, review)
    another_entry(world, intent)
    world.check(intent)
    void = Decision.objects.get(choice="void")
    assert (void.about.person, void.person) == (person, None)
    page = text_of(first.get("/intents/"))
    assert "Your first vote “Confirm: it happened” on Refund" in page
    assert "does not count any more" in page
    assert "voided: it no longer fits the facts" in text_of(first.get(f"/reviews/{review.pk}/"))
    assert 'name="choice"' in text_of(first.get(f"/reviews/{review.pk}/")), "they may vote anew"


def test_a_second_person_with_another_choice_voids_the_first_vote_and_gives_a_first_one(world: World) -> None:
    intent, review = lost_answer(world, amount=HIGH)
    first, _ = log_in()
    vote(first, review)
    second, boss = log_in("supervisor")
    page = text_of(vote(second, review, "fail", note="The provider says no."))
    assert "You gave the first vote" in page
    assert world.read(intent).status == "unknown"
    assert [row.choice for row in Decision.objects.order_by("pk")] == ["confirm", "void", "fail"]
    assert Decision.objects.get(choice="void").person == boss
    assert "does not count any more" in text_of(first.get("/"))


def test_whoever_comes_back_after_a_vote_was_voided_is_told_at_login(world: World) -> None:
    intent, review = lost_answer(world, amount=HIGH)
    person = factories.make_person()
    person.set_password("correct horse 1")
    person.save()
    from django.test import Client

    client, given = Client(), {"username": person.username, "password": "correct horse 1"}
    client.post("/login/", given)
    vote(client, review)
    client.post("/logout/")
    another_entry(world, intent)
    world.check(intent)
    page = client.post("/login/", given, follow=True)
    assert "Your first vote" in text_of(page)


def test_an_undone_second_vote_needs_both_votes_anew(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    intent, review = lost_answer(world, amount=HIGH)
    vote(log_in()[0], review)
    second, _ = log_in()
    vote(second, review)
    row = Decision.objects.get(takes_effect_at__isnull=False)
    second.post(f"/reviews/{review.pk}/undo/", {"decision": str(row.pk)})
    world.later(20)
    world.sweep()
    assert world.read(intent).status == "unknown"
    assert "You gave the first vote" in text_of(vote(second, review))


@pytest.mark.django_db
def test_an_approval_above_the_limit_is_for_one_payload_and_two_people() -> None:
    review = make_held(amount_minor=1_200_000)
    vote(log_in()[0], review, "approve", reason="justified")
    assert read(review).intent.status == "held"
    Intent.objects.filter(pk=review.intent_id).update(params='{"iban":"another"}')
    page = text_of(vote(log_in()[0], review, "approve", reason="justified"))
    assert "its payload was changed" in page
    assert read(review).intent.status == "held"


@pytest.mark.django_db
def test_an_entry_above_the_limit_is_linked_by_two_people(world: World) -> None:
    world.sandbox.order_fault("order-30", "lose_response")
    intent = world.propose("order-30", HIGH)
    world.send()
    Intent.objects.filter(pk=intent.pk).update(next_check_at=None)
    review = orphan(world.downstream, subject="order-30", amount_minor=740_000, currency="EUR", key="", state="final")
    path = f"/reviews/{review.pk}/"

    def link(client: Any) -> Any:
        (value, offer, _), *_ = client.get(path).context["orphan"]["offers"]
        assert offer.intent.pk == intent.pk
        return client.post(
            path + "decide/", {"choice": "link", "reason": "ledger", "note": "", "named": value}, follow=True
        )

    first, person = log_in()
    assert "A second, different person has to agree" in text_of(link(first))
    assert "a different person has to give the second" in text_of(
        again(person).post(
            path + "decide/",
            {"choice": "not_ours", "reason": "other", "note": "x", "seen_digest": "x"},
        )
    )
    assert world.read(intent).status != "confirmed"
    link(log_in()[0])
    assert world.read(intent).status == "confirmed"
    assert history.case_faults(read(review)) == []
