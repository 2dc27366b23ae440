"""A case waits for somebody's answer, and comes back by itself."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from actions import history, times
from actions.errors import BadDecision, Invalid, ReviewClosed, ReviewHeld
from actions.models import Intent
from reconciliation import sweep
from reconciliation.models import Comment, Purpose, ReasonCode, Review, WaitsFor
from reconciliation.reviews import claiming, commenting, opening, waiting
from tests import factories
from tests.desk.steps import log_in, lost_answer, press, read, text_of
from tests.flow.world import World
from tests.pages.cases import make_case, make_held

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


def put_aside(review: Review, person: User, *, until: datetime | None = None, **more: Any) -> Review:
    now = times.now()
    given: dict[str, Any] = {"waits_for": WaitsFor.BANK, "reference": "4711", "longest": now + 7 * DAY, "note": ""}
    return waiting.put_aside(review.pk, person=person, until=until or now + DAY, **(given | more))


def said(review: Review) -> list[tuple[str, str, str]]:
    rows = Comment.objects.filter(review=review).select_related("text").order_by("pk")
    return [(row.kind, row.text.source, row.text.text) for row in rows]


def acted(review: Review) -> tuple[User | None, str, User | None]:
    """Who did what was done last, and for whom."""
    row = Comment.objects.filter(review=review).order_by("-pk")[0]
    return row.person, row.by, row.to


@pytest.mark.django_db
def test_a_case_that_waits_leaves_the_queue_and_is_its_owners() -> None:
    review = make_case()
    client, person = log_in()
    client.post(f"/reviews/{review.pk}/take/")
    given = {"waits_for": "bank", "reference": "4711", "later": "86400", "longest": "604800", "note": "Ms Ito calls."}
    page = client.post(f"/reviews/{review.pk}/put-aside/", given, follow=True)
    assert "Put aside. It comes back to you by itself" in text_of(page)
    review = read(review)
    assert (review.waits_for, review.waits_reference, review.owner) == ("bank", "4711", person)
    assert (review.holder, review.lease_until) == (None, None)
    assert review.waits_until is not None
    assert abs(review.waits_until - times.now() - DAY) < timedelta(minutes=1)
    assert review.due_at >= review.waits_until
    other, _ = log_in()
    assert other.post("/next/").url == "/"
    ((kind, source, text),) = said(review)
    assert (kind, source) == ("waiting", f"person:{person.pk}")
    assert "Waits for the bank, reference 4711, until" in text
    assert text.endswith("Ms Ito calls.")


@pytest.mark.django_db
def test_a_time_is_read_in_the_readers_own_zone() -> None:
    from reconciliation.models import Preferences

    review = make_case()
    client, person = log_in()
    Preferences.objects.create(person=person, time_zone="Asia/Tokyo")
    at = times.now() + DAY
    given = {"waits_for": "bank", "later": "at", "at": f"{at:%Y-%m-%d}T14:00", "longest": "604800"}
    client.post(f"/reviews/{review.pk}/put-aside/", given)
    assert f"{read(review).waits_until:%H:%M}" == "05:00"


@pytest.mark.django_db
def test_a_time_is_read_in_the_browsers_zone_when_no_other_was_chosen() -> None:
    review = make_case()
    client, _ = log_in()
    at = times.now() + DAY
    given = {"waits_for": "bank", "later": "at", "at": f"{at:%Y-%m-%d}T14:00", "longest": "604800"}
    client.post(f"/reviews/{review.pk}/put-aside/", given | {"zone": "Asia/Tokyo"})
    assert f"{read(review).waits_until:%H:%M}" == "05:00"


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"waits_for": ""}, "Say whose answer it waits for."),
        ({"at": "2001-01-01T10:00"}, "Choose a time that is still to come."),
        ({"later": "604800", "longest": "86400"}, "The longest time can&#x27;t end before the follow-up time."),
        ({"later": "at"}, "Say when."),
        ({"reference": "x" * 201}, "at most 200 characters"),
    ],
)
def test_what_is_missing_is_said_and_what_was_typed_stays(wrong: dict[str, str], words: str) -> None:
    review = make_case()
    client, _ = log_in()
    given = {"waits_for": "bank", "later": "86400", "longest": "604800", "note": "Ms Ito calls."} | wrong
    page = client.post(f"/reviews/{review.pk}/put-aside/", given)
    assert page.status_code == 422
    assert words in text_of(page)
    assert "Ms Ito calls." in text_of(page)
    assert read(review).waits_until is None


@pytest.mark.django_db
def test_nobody_waits_longer_than_the_setting_says(settings: Any) -> None:
    settings.LANDED_LONGEST_WAIT_DAYS = 3
    with pytest.raises(Invalid, match="3 days"):
        put_aside(make_case(), factories.make_person("supervisor"), longest=times.now() + 4 * DAY)


@pytest.mark.django_db
def test_the_longest_time_agreed_on_moves_with_a_supervisor_only() -> None:
    review, person = make_case(), factories.make_person()
    put_aside(review, person, longest=times.now() + 2 * DAY)
    waiting.resume(review.pk, person=person)
    with pytest.raises(Invalid, match="A supervisor can agree to more"):
        put_aside(review, person, longest=times.now() + 5 * DAY)
    put_aside(review, person, longest=times.now() + DAY + HOUR)
    waiting.resume(review.pk, person=person)
    boss = factories.make_person("supervisor")
    claiming.take_over(review.pk, person=boss)
    put_aside(review, boss, longest=times.now() + 5 * DAY)
    assert read(review).waits_longest > times.now() + 4 * DAY


@pytest.mark.django_db
def test_what_somebody_else_has_is_not_put_aside_not_even_by_a_supervisor() -> None:
    review = make_case()
    claiming.claim(review.pk, person=factories.make_person())
    with pytest.raises(ReviewHeld):
        put_aside(review, factories.make_person("supervisor"))


@pytest.mark.django_db
def test_a_held_intent_waits_no_longer_than_its_approval_lasts() -> None:
    review = make_held(approve_before=times.now() + 2 * HOUR)
    person = factories.make_person()
    with pytest.raises(Invalid, match="Its approval expires"):
        put_aside(review, person, until=times.now() + 3 * HOUR)
    put_aside(review, person, until=times.now() + HOUR)
    assert read(review).due_at <= times.now() + 2 * HOUR


@pytest.mark.django_db
def test_a_closed_case_does_not_wait() -> None:
    review = make_case()
    intent = Intent.objects.get(pk=review.intent_id)
    opening.close(intent, "decision", now=times.now())  # type: ignore[arg-type]
    with pytest.raises(ReviewClosed):
        put_aside(review, factories.make_person())


@pytest.mark.django_db
def test_taking_it_up_again_ends_the_waiting_and_it_stays_ones_own() -> None:
    review = make_case()
    client, person = log_in()
    put_aside(review, person)
    page = client.post(f"/reviews/{review.pk}/resume/", {"note": "They called back."}, follow=True)
    assert "The case does not wait any more." in text_of(page)
    assert (read(review).waits_until, read(review).waits_for, read(review).owner) == (None, "", person)
    assert said(review)[-1][::2] == ("resumed", "They called back.")
    with pytest.raises(BadDecision, match="does not wait"):
        waiting.resume(review.pk, person=person)
    assert history.faults(Intent.objects.get(pk=review.intent_id)) == []


@pytest.mark.django_db
def test_somebody_elses_waiting_case_is_taken_up_by_a_supervisor_only() -> None:
    review = make_case()
    put_aside(review, factories.make_person())
    with pytest.raises(ReviewHeld):
        waiting.resume(review.pk, person=factories.make_person())
    waiting.resume(review.pk, person=factories.make_person("supervisor"))
    assert read(review).waits_until is None


def test_the_time_brings_it_back_to_its_owner_with_a_word(world: World) -> None:
    intent, review = lost_answer(world)
    person = factories.make_person(first_name="Mara")
    put_aside(review, person, until=times.now() + HOUR)
    world.later(3_000)
    sweep.sweep()
    assert read(review).waits_until is not None
    world.later(700)
    sweep.sweep()
    review = read(review)
    assert (review.waits_until, review.waits_for, review.owner) == (None, "", person)
    assert said(review)[-1] == ("resumed", "clock", "Back, because the time agreed on is over.")
    assert acted(review) == (None, "clock", person)
    sweep.sweep()
    assert len(said(review)) == 2
    assert "The clock brought it back to Mara" in text_of(log_in()[0].get(f"/reviews/{review.pk}/"))
    assert history.faults(world.read(intent)) == []


def test_another_ledger_entry_brings_it_back(world: World) -> None:
    intent, review = lost_answer(world)
    person = factories.make_person()
    put_aside(review, person)
    world.check(intent)
    assert read(review).waits_until is not None, "the same facts as before are no news"
    entry = {"order": intent.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": intent.idempotency_key}
    world.sandbox.call("POST", "/_control/entries", entry)
    world.check(intent)
    assert (read(review).waits_until, read(review).owner) == (None, person)
    assert said(review)[-1] == ("resumed", "checker", "Back, because the ledger shows something else than before.")
    assert acted(review) == (None, "checker", person)


def test_a_new_reason_brings_it_back(world: World) -> None:
    _, review = lost_answer(world)
    put_aside(review, factories.make_person())
    with transaction.atomic():
        opening.add_reason(commenting.locked(review.pk), ReasonCode.REQUESTED, now=times.now())
    assert read(review).waits_until is None
    assert said(review)[-1][2] == "Back, because there is a new reason to look at it."


def test_evidence_that_settles_it_ends_the_case_while_it_waits(world: World) -> None:
    world.sandbox.configure(ledger_lag_s=60)
    world.sandbox.order_fault("order-11", "lose_response")
    intent = world.propose("order-11")
    world.send()
    world.later(700)
    world.check(intent)
    review = world.review(intent)
    put_aside(review, factories.make_person())
    world.sandbox.configure(ledger_lag_s=0)
    world.check(intent)
    assert world.read(intent).status == "confirmed"
    assert (read(review).closed_how, read(review).waits_until) == ("resolved_by_evidence", None)


def test_a_waiting_case_can_be_decided_by_its_owner(world: World) -> None:
    intent, review = lost_answer(world)
    client, person = log_in()
    put_aside(review, person)
    client.post(f"/reviews/{review.pk}/decide/", press(client.get(f"/reviews/{review.pk}/")))
    assert world.read(intent).status == "confirmed"


@pytest.mark.django_db
def test_a_case_about_an_entry_waits_and_comes_back_as_well() -> None:
    from tests.ledger.books import orphan

    review = orphan(factories.make_downstream())
    assert review.purpose == Purpose.ENTRY
    person = factories.make_person()
    put_aside(review, person)
    Review.objects.filter(pk=review.pk).update(waits_until=times.now())
    sweep.sweep()
    assert (read(review).waits_until, read(review).owner) == (None, person)
    assert history.case_faults(read(review)) == []
