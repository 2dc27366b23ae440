"""Races and slips at the desk, over HTTP: one decision, nobody frightened, nothing that was typed lost."""

from typing import Any

import pytest

from actions import history
from actions.models import Intent
from reconciliation import sweep
from reconciliation.models import Decision, Review
from reconciliation.reviews import claiming
from tests import factories
from tests.desk.steps import again, all_at_once, lease_is_over, log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.pages.cases import make_held

NOTE = "The customer sent <b>a statement</b>."


def decide(client: Any, review: Review, given: dict[str, str]) -> Any:
    return client.post(f"/reviews/{review.pk}/decide/", given)


def opened(client: Any, review: Review) -> Any:
    return client.get(f"/reviews/{review.pk}/")


def votes(review: Review) -> int:
    return Decision.objects.filter(review=review, choice__in=["confirm", "fail", "approve", "reject"]).count()


def another_entry(world: World, intent: Intent) -> None:
    entry = {"order": intent.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": intent.idempotency_key}
    world.sandbox.call("POST", "/_control/entries", entry)


@pytest.mark.parametrize("window", [0, 15])
def test_a_double_click_is_one_decision_and_both_answers_say_so(world: World, settings: Any, window: int) -> None:
    settings.LANDED_UNDO_S = window
    intent, review = lost_answer(world)
    client, person = log_in()
    given = press(opened(client, review))
    answers: list[Any] = all_at_once(
        [lambda one=one: decide(one, review, given) for one in (client, again(person))]  # type: ignore[misc]
    )
    assert [answer.status_code for answer in answers] == [302, 302], [text_of(one)[:2000] for one in answers]
    assert votes(review) == 1
    assert world.read(intent).transitions.filter(to_status="confirmed").count() == (0 if window else 1)
    assert history.faults(world.read(intent)) == []


def test_a_double_click_on_a_first_vote_leaves_the_case_free_for_the_second_person(world: World) -> None:
    intent, review = lost_answer(world, amount="7400.00")
    client, person = log_in()
    given = press(opened(client, review))
    answers: list[Any] = all_at_once(
        [lambda one=one: decide(one, review, given) for one in (client, again(person))]  # type: ignore[misc]
    )
    assert [answer.status_code for answer in answers] == [302, 302]
    assert votes(review) == 1
    assert read(review).holder is None
    other, _ = log_in()
    decide(other, review, press(opened(other, review)))
    assert world.read(intent).status == "confirmed"


def test_back_and_decide_again_says_that_one_has_decided_it_already(world: World) -> None:
    _, review = lost_answer(world)
    client, _ = log_in()
    page = opened(client, review)
    decide(client, review, press(page))
    answer = decide(client, review, press(page, "fail", note=NOTE))
    assert answer.status_code == 409
    assert "You have decided this case already; nothing was decided again." in text_of(answer)
    assert answer.context["comment_form"]["text"].value() == NOTE
    assert votes(review) == 1


def test_a_stale_tab_shows_the_new_facts_decides_nothing_and_keeps_the_note(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    page = opened(client, review)
    another_entry(world, intent)
    answer = decide(client, review, press(page, note=NOTE))
    assert answer.status_code == 409
    assert "Nothing was decided: the facts have changed since you opened this page." in text_of(answer)
    assert answer.context["form"]["note"].value() == NOTE
    assert len(answer.context["known"].candidates) == 2
    assert votes(review) == 0


def test_a_lost_lease_decides_nothing_and_says_who_has_it(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    client.post(f"/reviews/{review.pk}/take/")
    page = opened(client, review)
    lease_is_over(review)
    claiming.claim(review.pk, person=factories.make_person(first_name="Jon"))
    answer = decide(client, review, press(page, note=NOTE))
    assert answer.status_code == 409
    assert "Jon has it until" in text_of(answer)
    assert answer.context["comment_form"]["text"].value() == NOTE
    assert world.read(intent).status == "unknown"


def test_of_two_reviewers_at_once_one_decides_and_the_other_is_told_by_whom(world: World) -> None:
    intent, review = lost_answer(world)
    people = {"Mara": log_in(first_name="Mara")[0], "Jon": log_in(first_name="Jon")[0]}
    pages = {name: press(opened(client, review)) for name, client in people.items()}
    acts = [lambda name=name: decide(people[name], review, pages[name]) for name in people]  # type: ignore[misc]
    answers: list[Any] = all_at_once(acts)
    assert sorted(answer.status_code for answer in answers) == [302, 409]
    winner = "Mara" if answers[0].status_code == 302 else "Jon"
    loser = next(text_of(answer) for answer in answers if answer.status_code == 409)
    assert "Nothing was decided" in loser
    assert winner in loser
    assert votes(review) == 1
    assert world.read(intent).transitions.filter(to_status="confirmed").count() == 1


def test_a_decision_on_a_closed_case_says_by_whom_and_when(world: World) -> None:
    _, review = lost_answer(world)
    mara, jon = log_in(first_name="Mara")[0], log_in()[0]
    page = opened(jon, review)
    decide(mara, review, press(opened(mara, review)))
    answer = decide(jon, review, press(page, note=NOTE))
    assert "Nothing was decided: this case is closed." in text_of(answer)
    assert "Mara decided it" in text_of(answer)
    assert answer.context["comment_form"]["text"].value() == NOTE


def test_the_checker_settles_it_while_the_form_is_open(world: World) -> None:
    world.sandbox.configure(ledger_lag_s=60)
    world.sandbox.order_fault("order-12", "lose_response")
    intent = world.propose("order-12")
    world.send()
    world.later(700)
    world.check(intent)
    review = world.review(intent)
    client, _ = log_in("supervisor")
    page = opened(client, review)
    world.sandbox.configure(ledger_lag_s=0)
    world.check(intent)
    answer = decide(client, review, press(page, "fail", note=NOTE))
    assert answer.status_code == 409
    assert "Evidence settled it; nobody has to decide." in text_of(answer)
    assert answer.context["comment_form"]["text"].value() == NOTE
    assert (world.read(intent).status, votes(review)) == ("confirmed", 0)


def test_a_decision_during_somebody_elses_undo_window_is_told_by_whom_and_when(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    _, review = lost_answer(world)
    mara, jon = log_in(first_name="Mara")[0], log_in("supervisor")[0]
    page = opened(jon, review)
    decide(mara, review, press(opened(mara, review)))
    answer = decide(jon, review, press(page, "fail", note=NOTE))
    assert answer.status_code == 409
    assert "Mara decided this case at" in text_of(answer)
    assert "unless it is taken back" in text_of(answer)
    assert answer.context["comment_form"]["text"].value() == NOTE
    assert votes(review) == 1


def test_the_clock_and_undo_at_once_are_one_or_the_other(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 1
    intent, review = lost_answer(world)
    client, _ = log_in()
    decide(client, review, press(opened(client, review)))
    row = Decision.objects.get(review=review)
    world.later(2)
    all_at_once(
        [
            lambda: client.post(f"/reviews/{review.pk}/undo/", {"decision": str(row.pk)}).status_code,
            lambda: sweep.sweep().changed,
            lambda: sweep.sweep().changed,
        ]
    )
    (became,) = Decision.objects.filter(about=row).values_list("choice", flat=True)
    assert (became, world.read(intent).status) in [("undo", "unknown"), ("effect", "confirmed")]
    assert history.faults(world.read(intent)) == []


@pytest.mark.django_db
def test_enter_in_a_field_presses_a_button_that_chooses_nothing() -> None:
    review = make_held()
    client, _ = log_in()
    page = text_of(opened(client, review))
    form = page[page.index(f'action="/reviews/{review.pk}/decide/"') :]
    first = form[form.index("<button") :].split(">", 1)[0]
    assert "disabled" not in first
    assert 'name="enter"' in first
    assert decide(client, review, {"reason": "ledger", "note": ""}).status_code == 422
    assert votes(review) == 0


@pytest.mark.django_db
def test_looking_at_every_page_of_a_case_changes_nothing() -> None:
    review = make_held()
    client, _ = log_in("supervisor")
    before = [Review.objects.values().get(), Intent.objects.values().get()]
    for path in ("", "wait/", "hand/"):
        assert client.get(f"/reviews/{review.pk}/{path}").status_code == 200
    for path in ("", "open/"):
        assert client.get(f"/intents/{review.intent_id}/{path}").status_code == 200
    for path in ("decide/", "take/", "undo/", "skip/"):
        assert client.get(f"/reviews/{review.pk}/{path}").status_code == 405
    assert client.get("/next/").status_code == 405
    assert [Review.objects.values().get(), Intent.objects.values().get()] == before
