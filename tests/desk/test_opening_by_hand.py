"""A person opens a case on any intent, and says that the customer waits."""

from datetime import timedelta
from typing import Any

import pytest

from actions import dispatch, history, times
from actions.errors import BadDecision, Invalid, NotFound
from actions.models import Intent
from actions.statuses import Status
from reconciliation.models import Comment, Review, WaitsFor
from reconciliation.reviews import opening_by_hand, waiting
from tests import factories
from tests.desk.steps import log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.pages.cases import make_case, make_held, make_unknown

pytestmark = pytest.mark.django_db


def ask(client: Any, intent: Intent, **more: str) -> Any:
    given = {"reason": "The customer called twice."} | more
    return client.post(f"/intents/{intent.pk}/open-case/", given, follow=True)


def case_of(intent: Intent) -> Review:
    return Review.objects.get(intent=intent, closed_at__isnull=True)


def reasons(review: Review) -> list[str]:
    return [reason.code for reason in review.reasons.all()]


def test_an_unknown_intent_gets_a_case_with_the_reason_in_its_history() -> None:
    intent = make_unknown()
    client, person = log_in()
    page = ask(client, intent)
    review = case_of(intent)
    assert page.redirect_chain == [(f"/reviews/{review.pk}/", 302)]
    assert "The customer called twice." in text_of(page)
    assert (review.purpose, reasons(review), review.customer_waiting) == ("outcome", ["requested"], False)
    row = Comment.objects.get(review=review)
    assert (row.kind, row.person) == ("opened", person)
    assert history.faults(Intent.objects.get(pk=intent.pk)) == []


def test_an_open_case_gets_one_more_reason_and_keeps_what_it_recommends(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in()
    ask(client, intent, customer_waiting="on")
    again = case_of(intent)
    assert again.pk == review.pk
    assert reasons(again) == ["high_value", "requested"]
    assert (again.recommendation, again.customer_waiting) == ("confirm", True)


def test_what_was_recorded_is_held_and_nobody_sends_it_before_it_is_approved(world: World) -> None:
    intent = world.propose("order-40")
    client, _ = log_in()
    assert "nobody sends it before a person approves" in text_of(client.get(f"/intents/{intent.pk}/"))
    ask(client, intent)
    assert world.read(intent).status == Status.HELD
    assert (case_of(intent).purpose, reasons(case_of(intent))) == ("approval", ["requested"])
    assert world.send() == 0
    assert world.posts(intent) == 0
    path = f"/reviews/{case_of(intent).pk}/"
    client.post(path + "decide/", press(client.get(path), "approve", reason="justified"))
    world.send()
    assert world.read(intent).status == "confirmed"
    assert history.faults(world.read(intent)) == []


def test_the_agent_reads_no_more_than_that_a_person_looks(world: World) -> None:
    from actions import reasons as codes

    intent = world.propose("order-41")
    ask(log_in()[0], intent)
    assert codes.public(world.read(intent).status_reason) == "in_review"


def test_what_is_held_gets_one_more_reason() -> None:
    review = make_held()
    intent = Intent.objects.get(pk=review.intent_id)
    ask(log_in()[0], intent)
    assert reasons(case_of(intent)) == ["approval", "requested"]
    assert Intent.objects.get(pk=intent.pk).status == "held"


def test_what_is_being_sent_is_left_alone(world: World) -> None:
    intent = world.propose("order-42")
    (claimed,) = dispatch.claim(slots=1)
    client, _ = log_in()
    assert "It is being sent at this moment." in text_of(client.get(f"/intents/{intent.pk}/"))
    page = ask(client, intent)
    assert page.status_code == 409
    assert "It is being sent at this moment." in text_of(page)
    assert world.read(intent).status == "submitted"
    assert not Review.objects.exists()
    del claimed


def test_what_was_accepted_and_has_no_answer_yet_becomes_unknown_with_a_warning() -> None:
    intent = factories.make_intent(to=Status.SUBMITTED, first_maybe_sent_at=times.now())
    client, person = log_in()
    assert "its answer may still be on its way" in text_of(client.get(f"/intents/{intent.pk}/"))
    ask(client, intent)
    found = Intent.objects.get(pk=intent.pk)
    assert found.status == "unknown"
    last = found.transitions.order_by("-sequence").first()
    assert last is not None
    assert (last.actor, last.actor_id, last.reason) == ("reviewer", f"person:{person.pk}", "in_review")
    assert "requested" in reasons(case_of(intent))


def _cancelled() -> Intent:
    from actions import withdrawing
    from actions.reasons import Reason
    from actions.statuses import Actor

    intent = factories.make_intent()
    who = f"agent:{intent.agent_id}"
    return withdrawing.cancel(intent.pk, actor=Actor.AGENT, actor_id=who, reason=Reason.CANCELLED_BY_AGENT)


def test_what_was_cancelled_is_looked_at_again_and_stays_as_it_is() -> None:
    intent = _cancelled()
    client, _ = log_in()
    ask(client, intent)
    review = case_of(intent)
    page = client.get(f"/reviews/{review.pk}/")
    assert [option.choice for option in page.context["options"]] == ["uphold"]
    client.post(f"/reviews/{review.pk}/decide/", press(page, "uphold", reason="justified"))
    assert (read(review).closed_how, Intent.objects.get(pk=intent.pk).status) == ("decision", "cancelled")
    assert history.faults(Intent.objects.get(pk=intent.pk)) == []


def test_upholding_what_nobody_disputed_keeps_the_looks_that_are_planned(world: World) -> None:
    intent, review = lost_answer(world)
    client, _ = log_in("supervisor")
    path = f"/reviews/{review.pk}/"
    client.post(path + "decide/", press(client.get(path)))
    later = times.now()
    Intent.objects.filter(pk=intent.pk).update(next_check_at=later)
    ask(client, intent)
    again = case_of(intent)
    assert (again.pk == review.pk, world.read(intent).disputed) == (False, False)
    path = f"/reviews/{again.pk}/"
    client.post(path + "decide/", press(client.get(path), "uphold"))
    assert read(again).closed_at is not None
    assert (world.read(intent).status, world.read(intent).next_check_at) == ("confirmed", later)


def test_upholding_above_the_second_limit_takes_two_people(world: World) -> None:
    intent = factories.make_intent(world.kind, amount_minor=740_000, to=Status.HELD)
    client, _ = log_in()
    path = f"/reviews/{case_of(intent).pk}/"
    client.post(path + "decide/", press(client.get(path), "reject", reason="not_justified"))
    ask(client, intent)
    path = f"/reviews/{case_of(intent).pk}/"
    client.post(path + "decide/", press(client.get(path), "uphold", reason="justified"))
    assert case_of(intent).closed_at is None
    other, _ = log_in()
    other.post(path + "decide/", press(other.get(path), "uphold", reason="justified"))
    assert not Review.objects.filter(intent=intent, closed_at__isnull=True).exists()


def test_a_reason_is_needed() -> None:
    intent = make_unknown()
    page = ask(log_in()[0], intent, reason="  ", customer_waiting="on")
    assert page.status_code == 422
    assert "Say why: whoever takes the case will ask." in text_of(page)
    assert not Review.objects.filter(reasons__code="requested").exists()
    with pytest.raises(Invalid):
        opening_by_hand.open_case(intent.pk, person=factories.make_person(), reason="x" * 4_001)


def test_what_does_not_exist_is_not_opened() -> None:
    from uuid import uuid4

    with pytest.raises(NotFound):
        opening_by_hand.open_case(uuid4(), person=factories.make_person(), reason="x")
    assert log_in()[0].post(f"/intents/{uuid4()}/open-case/", {"reason": "x"}).status_code == 404


def test_auditors_read_the_intent_and_open_nothing() -> None:
    intent = make_unknown()
    auditor, _ = log_in("auditor")
    assert "Open a case" not in text_of(auditor.get(f"/intents/{intent.pk}/"))
    assert auditor.post(f"/intents/{intent.pk}/open-case/", {"reason": "x"}).status_code == 403


def test_a_case_whose_customer_waits_is_the_next_one_until_they_do_not() -> None:
    first, second = make_case(), make_case()
    client, _ = log_in()
    page = client.post(f"/reviews/{second.pk}/raise/", {"waits": "yes"}, follow=True)
    assert "The customer waits: the case is at the top of the queue." in text_of(page)
    other, _ = log_in()
    assert other.post("/next/").url == f"/reviews/{second.pk}/"
    other.post(f"/reviews/{second.pk}/release/")
    client.post(f"/reviews/{second.pk}/raise/", {"waits": "no"})
    assert other.post("/next/").url == f"/reviews/{first.pk}/"
    kinds = [(row.kind, row.text.text) for row in Comment.objects.filter(review=second).order_by("pk")]
    assert kinds == [("raised", "The customer waits."), ("", "The customer does not wait any more.")]


def test_saying_twice_that_the_customer_waits_is_said_once() -> None:
    review = make_case()
    client, _ = log_in()
    for _ in range(2):
        client.post(f"/reviews/{review.pk}/raise/", {"waits": "yes"})
    assert Comment.objects.filter(kind="raised").count() == 1


def test_saying_it_again_of_a_case_put_aside_meanwhile_brings_it_back() -> None:
    review = make_case()
    client, person = log_in()
    client.post(f"/reviews/{review.pk}/raise/", {"waits": "yes"})
    until = times.now() + timedelta(days=5)
    waiting.put_aside(
        review.pk, person=person, waits_for=WaitsFor.BANK, reference="", until=until, longest=until, note=""
    )
    other, _ = log_in()
    page = text_of(other.get(f"/reviews/{review.pk}/"))
    assert "Back into the queue, at its top." in page
    assert "The customer does not wait any more" in page
    other.post(f"/reviews/{review.pk}/raise/", {"waits": "yes"})
    found = read(review)
    assert (found.waits_until, found.waits_for, found.customer_waiting) == (None, "", True)
    assert found.due_at < until
    assert Comment.objects.filter(review=review, kind="raised").count() == 2
    assert history.faults(Intent.objects.get(pk=review.intent_id)) == []


def test_a_lease_that_has_just_ended_is_waited_for_too(world: World) -> None:
    intent = world.propose("order-43")
    dispatch.claim(slots=1)
    world.later(60)
    with pytest.raises(BadDecision, match="becomes unknown in a moment"):
        opening_by_hand.open_case(intent.pk, person=factories.make_person(), reason="x")
