"""Who works on a case: nobody gets what somebody else has, and whoever goes gives it back."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client

from actions import history, times
from actions.errors import BadDecision, PersonNotAllowed
from actions.models import Intent
from reconciliation.models import Decision, Review, WaitsFor
from reconciliation.reviews import claiming, commenting, opening_by_hand, pending, waiting
from tests import factories
from tests.desk.steps import again, all_at_once, beside, lease_is_over, log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.pages.cases import make_case, make_held

pytestmark = pytest.mark.django_db


@pytest.mark.django_db(transaction=True)
def test_twenty_people_who_ask_at_once_get_twenty_different_cases() -> None:
    kind = factories.make_kind()
    for _ in range(20):
        make_case(kind)
    people = [log_in() for _ in range(20)]
    answers: list[Any] = all_at_once([lambda client=client: client.post("/next/") for client, _ in people])
    assert {answer.status_code for answer in answers} == {302}
    assert len({answer.url for answer in answers}) == 20
    assert Review.objects.filter(holder__in=[person for _, person in people]).count() == 20


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer at a time")
def test_of_twenty_people_who_take_the_same_case_one_gets_it() -> None:
    review = make_case()
    people = [factories.make_person() for _ in range(20)]
    found = all_at_once([lambda person=person: claiming.claim(review.pk, person=person) for person in people])
    assert sum(isinstance(one, Review) for one in found) == 1
    assert read(review).holder in people


@pytest.mark.django_db(transaction=True)
def test_who_waits_for_the_row_while_their_own_first_vote_is_stored_does_not_keep_the_case() -> None:
    review, person = make_held(amount_minor=1_200_000), factories.make_person()
    claiming.claim(review.pk, person=person)
    with transaction.atomic():
        commenting.locked(review.pk)
        other_tab = beside(lambda: claiming.claim(review.pk, person=person))
        vote = Decision(review=review, intent=review.intent, person=person, choice="approve", seen_version=1)
        history.append(vote, owner=Intent, pk=review.intent_id, at=times.now())
        claiming.stand_back(review.pk, person=person)
    assert isinstance(other_tab(), BadDecision)
    assert read(review).holder is None
    claiming.claim(review.pk, person=factories.make_person())


def test_skipping_gives_the_case_back_and_takes_another() -> None:
    first, second = make_case(), make_case()
    client, person = log_in()
    assert client.post("/next/").url == f"/reviews/{first.pk}/"
    assert client.post(f"/reviews/{first.pk}/skip/").url == f"/reviews/{second.pk}/"
    assert (read(first).holder, read(second).holder) == (None, person)


def test_what_was_skipped_is_not_offered_again_in_this_session_but_to_others() -> None:
    review = make_case()
    client, person = log_in()
    client.post("/next/")
    page = client.post(f"/reviews/{review.pk}/skip/", follow=True)
    assert "Those that you skipped are still in the queue." in text_of(page)
    assert client.post("/next/").url == "/"
    assert read(review).holder is None
    assert again(person).post("/next/").url == f"/reviews/{review.pk}/"


def test_the_next_case_is_never_one_whose_first_vote_is_ones_own(world: World) -> None:
    _, review = lost_answer(world, amount="7400.00")
    path = f"/reviews/{review.pk}/"
    client, _ = log_in()
    client.post(path + "decide/", press(client.get(path)))
    assert client.post("/next/").url == "/"
    other, _ = log_in()
    assert other.post("/next/").url == path


def test_whoever_is_active_keeps_the_case_and_reads_until_when() -> None:
    review = make_case()
    client, person = log_in()
    client.post(f"/reviews/{review.pk}/take/")
    soon = times.now() + timedelta(seconds=30)
    Review.objects.filter(pk=review.pk).update(lease_until=soon)
    answer = client.post(f"/reviews/{review.pk}/renew/", headers={"HX-Request": "true"})
    assert "held by you until" in text_of(answer)
    assert read(review).lease_until > soon + timedelta(minutes=5)
    assert read(review).holder == person


def test_a_lost_lease_is_told_with_the_name_of_whoever_has_the_case_now() -> None:
    review = make_case()
    client, _ = log_in()
    client.post(f"/reviews/{review.pk}/take/")
    lease_is_over(review)
    claiming.claim(review.pk, person=factories.make_person(first_name="Jon"))
    said = text_of(client.post(f"/reviews/{review.pk}/renew/"))
    assert "You don't hold this case any more." in said
    assert "Jon has it until" in said
    assert "What you have typed stays on this page." in said
    assert "hx-post" not in said


def test_a_case_that_was_closed_meanwhile_says_by_whom(world: World) -> None:
    _, review = lost_answer(world)
    path = f"/reviews/{review.pk}/"
    client, _ = log_in()
    client.post(path + "take/")
    lease_is_over(review)
    other, _ = log_in(first_name="Mara")
    other.post(path + "decide/", press(other.get(path)))
    assert "Mara decided it at" in text_of(client.post(path + "renew/"))


def test_whoever_logs_out_gives_back_what_they_work_on_and_keeps_what_is_theirs() -> None:
    held, kept = make_case(), make_case()
    client, person = log_in()
    client.post(f"/reviews/{held.pk}/take/")
    client.post(f"/reviews/{kept.pk}/keep/")
    client.post("/logout/")
    assert [(one.holder, one.owner) for one in (read(held), read(kept))] == [(None, None), (None, person)]


def test_logging_out_of_the_admin_gives_back_as_well() -> None:
    review = make_case()
    client, _ = log_in("admin")
    claiming.claim(review.pk, person=User.objects.get())
    client.post("/admin/logout/")
    assert read(review).holder is None


def test_somebody_else_who_logs_in_over_a_session_lets_go_of_its_cases() -> None:
    review = make_case()
    client, _ = log_in()
    client.post(f"/reviews/{review.pk}/take/")
    boss = factories.make_person("admin")
    boss.set_password("correct horse 1")
    boss.save()
    client.post("/admin/login/", {"username": boss.username, "password": "correct horse 1"})
    assert client.get("/admin/").wsgi_request.user == boss
    assert read(review).holder is None


def test_a_case_that_is_kept_is_nobody_elses_until_it_is_given_back() -> None:
    review = make_case()
    client, person = log_in(first_name="Mara")
    client.post(f"/reviews/{review.pk}/keep/")
    lease_is_over(review)
    other, _ = log_in()
    page = text_of(other.post(f"/reviews/{review.pk}/take/", follow=True))
    assert "This case belongs to somebody else. A supervisor can take it over." in page
    assert other.post("/next/").url == "/"
    client.post(f"/reviews/{review.pk}/give-back/")
    assert other.post("/next/").url == f"/reviews/{review.pk}/"
    assert read(review).owner != person


def _acts(review: Review, to: User) -> dict[str, Callable[[User], object]]:
    later = times.now() + timedelta(hours=1)
    pk, intent_id = review.pk, review.intent_id
    assert intent_id is not None
    return {
        "claim": lambda who: claiming.claim(pk, person=who),
        "next": lambda who: claiming.take_next(person=who),
        "keep": lambda who: claiming.keep(pk, person=who),
        "hand over": lambda who: claiming.hand_over(pk, person=who, to=to, note="look"),
        "take over": lambda who: claiming.take_over(pk, person=who),
        "resume": lambda who: waiting.resume(pk, person=who),
        "undo": lambda who: pending.undo(1, person=who),
        "open": lambda who: opening_by_hand.open_case(intent_id, person=who, reason="look"),
        "raise": lambda who: opening_by_hand.customer_waits(pk, person=who, waits=True),
        "wait": lambda who: waiting.put_aside(
            pk, person=who, waits_for=WaitsFor.BANK, reference="", until=later, longest=later, note=""
        ),
    }


@pytest.mark.parametrize("role", ["auditor", "nobody"])
def test_those_who_may_not_decide_do_nothing_with_a_case(role: str) -> None:
    review, to = make_case(), factories.make_person()
    person = User.objects.create_user("nobody") if role == "nobody" else factories.make_person(role)
    before = Review.objects.filter(pk=review.pk).values().get()
    for act in _acts(review, to).values():
        with pytest.raises(PersonNotAllowed):
            act(person)
    assert Review.objects.filter(pk=review.pk).values().get() == before


_PATHS = ["renew", "skip", "keep", "give-back", "take-over", "hand-over", "put-aside", "resume", "raise", "undo"]


@pytest.mark.parametrize("step", _PATHS)
def test_a_get_changes_nothing_and_an_auditor_is_refused(step: str) -> None:
    review = make_case()
    before = Review.objects.filter(pk=review.pk).values().get()
    reviewer, _ = log_in("supervisor")
    assert reviewer.get(f"/reviews/{review.pk}/{step}/").status_code == 405
    auditor, _ = log_in("auditor")
    assert auditor.post(f"/reviews/{review.pk}/{step}/").status_code == 403
    assert Client().post(f"/reviews/{review.pk}/{step}/").url.startswith("/login/")
    assert Review.objects.filter(pk=review.pk).values().get() == before
