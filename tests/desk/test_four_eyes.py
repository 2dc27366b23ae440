"""Above the second limit two different people agree on the same payload and the same evidence."""

from typing import Any

import pytest

from actions import history
from actions.models import Intent
from reconciliation.models import Choice, Decision, Notice, Review
from reconciliation.reviews import pending
from reconciliation.views import watching
from tests import factories
from tests.desk.steps import again, log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.flushing import without_triggers
from tests.ledger.books import decide, orphan
from tests.pages.cases import make_held, make_unknown

HIGH = "7400.00"


def vote(client: Any, review: Review, choice: str = "confirm", **more: str) -> Any:
    path = f"/reviews/{review.pk}/"
    return client.post(path + "decide/", press(client.get(path), choice, **more), follow=True)


def told_by_mail() -> list[tuple[int | None, int | None]]:
    return list(Notice.objects.filter(kind="vote_again").values_list("review", "to"))


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
    assert told_by_mail() == [(review.pk, person.pk)]
    assert "no longer fits what they were given for" in text_of(log_in()[0].get(f"/reviews/{review.pk}/"))
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


@pytest.mark.django_db
def test_an_undone_second_vote_about_an_entry_is_told_the_same_way(settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    kind = factories.make_kind()
    intent = make_unknown(kind, amount_minor=740_000)
    review = orphan(kind.downstream, amount_minor=740_000, subject=intent.subject)
    mara, rita = factories.make_person(), factories.make_person()
    decide(review, mara, Choice.LINK, intent)
    made = decide(review, rita, Choice.LINK, intent)
    assert made.state == "undo_window"
    pending.undo(made.decision.pk, person=rita)
    assert told_by_mail() == [(review.pk, mara.pk)]
    assert "Both votes are asked for anew." in text_of(again(rita).get(f"/reviews/{review.pk}/"))
    decide(review, rita, Choice.LINK, intent)
    assert "Both votes are asked for anew." not in text_of(again(rita).get(f"/reviews/{review.pk}/"))


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


def test_an_undone_second_vote_needs_both_votes_anew_and_the_first_voter_is_told(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    intent, review = lost_answer(world, amount=HIGH)
    first, mara = log_in()
    vote(first, review)
    second, rita = log_in(first_name="Rita")
    vote(second, review)
    assert "any more" not in text_of(first.get("/"))
    row = Decision.objects.get(takes_effect_at__isnull=False)
    page = text_of(second.post(f"/reviews/{review.pk}/undo/", {"decision": str(row.pk)}, follow=True))
    assert "Taken back: nothing was decided. Both votes are asked for anew." in page
    assert told_by_mail() == [(review.pk, mara.pk)]
    assert "does not count any more: the second person took theirs back" in text_of(first.get("/intents/"))
    assert "any more" not in text_of(first.get("/intents/")), "said once"
    assert watching.voided_since(mara, row.at) == [row.about_id]
    assert watching.voided_since(rita, row.at) == []
    page = text_of(first.get(f"/reviews/{review.pk}/"))
    assert "Both votes are asked for anew." in page
    assert "Rita took the second vote back" in page
    world.later(20)
    world.sweep()
    assert world.read(intent).status == "unknown"
    assert "You gave the first vote" in text_of(vote(second, review))


@pytest.mark.django_db
def test_an_approval_above_the_limit_is_for_one_payload_and_two_people() -> None:
    review = make_held(amount_minor=1_200_000)
    vote(log_in()[0], review, "approve", reason="justified")
    assert read(review).intent.status == "held"
    with without_triggers():
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
