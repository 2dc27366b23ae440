"""An outage is one line of the queue: its cases wait for its end, and are seen one by one after another look."""

from datetime import datetime, timedelta

import pytest
from django.db import transaction

from actions import breakers, times
from actions.models import Downstream, Intent, Line
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Incident, IncidentKind, ReasonCode, Review, WaitsFor
from reconciliation.reviews import claiming, opening, waiting
from reconciliation.views import queue
from tests.connectors.replies import reply
from tests.factories import make_downstream, make_intent, make_kind, make_person
from tests.flow.test_breakers import SILENT, answer, propose
from tests.flow.test_sending import in_threads
from tests.flow.world import World


@pytest.fixture(autouse=True)
def three(world: World) -> None:
    Downstream.objects.update(breaker_after=3)


def outage(world: World, line: Line = Line.SENDING) -> Incident:
    for _ in range(3):
        breakers.unanswered(Downstream.objects.get(pk=world.downstream.pk), line, now=times.now())
    return Incident.objects.get(closed_at=None)


def end(world: World, line: Line = Line.SENDING) -> None:
    breakers.answered(world.downstream, line, now=times.now())


def cases(world: World, count: int, reason: ReasonCode = ReasonCode.STILL_UNKNOWN) -> list[Review]:
    """So many unknown intents, each with a case."""
    intents = propose(world, count)
    answer(count, SILENT)
    for intent in intents:
        case(world.read(intent), reason)
    return list(Review.objects.order_by("pk"))


def case(intent: Intent, reason: ReasonCode) -> Review:
    with transaction.atomic():
        return opening.open_for_outcome(intent, reason, now=times.now())


def listed(tab: str = "all") -> int:
    return queue.counts(make_person(), times.now()).get(tab, 0)


def test_its_cases_are_one_line_and_nobody_is_given_one_of_them(world: World) -> None:
    cases(world, 2)
    incident = outage(world)
    assert (incident.kind, listed()) == (IncidentKind.SENDING, 2)
    world.sweep()
    assert listed() == listed("unclaimed") == 0
    (line,) = queue.outages(times.now())
    assert (line.incident, line.cases) == (incident, 2)
    assert claiming.take_next(person=make_person()) is None
    assert listed("incidents") == 2, "who wants to see them does"


@pytest.mark.parametrize("reason", [ReasonCode.MISMATCH, ReasonCode.HIGH_VALUE, ReasonCode.REQUESTED])
def test_a_case_with_another_reason_stays_where_people_see_it(world: World, reason: ReasonCode) -> None:
    cases(world, 1, reason)
    outage(world)
    world.sweep()
    assert listed() == 1


def test_somebodys_case_and_one_whose_customer_waits_stay_too(world: World) -> None:
    mine, waiting, _ = cases(world, 3)
    claiming.claim(mine.pk, person=make_person())
    Review.objects.filter(pk=waiting.pk).update(customer_waiting=True)
    outage(world)
    world.sweep()
    assert list(Review.objects.filter(incident=None).order_by("pk")) == [mine, waiting]


def test_new_findings_take_a_case_out_of_it(world: World) -> None:
    (review,) = cases(world, 1)
    outage(world)
    world.sweep()
    assert review.intent is not None
    case(world.read(review.intent), ReasonCode.MISMATCH)
    assert listed() == 1
    world.sweep()
    assert listed() == 1


def test_time_stands_still_for_them_and_at_the_end_all_are_looked_up_before_anybody_sees_them(world: World) -> None:
    reviews = cases(world, 3)
    due = {review.pk: review.due_at for review in reviews}
    outage(world)
    world.sweep()
    Intent.objects.update(next_check_at=times.now() + timedelta(days=1))
    world.later(3_600)
    assert listed("overdue") == 0
    end(world)
    world.sweep()
    assert Incident.objects.get().rechecked_at is not None
    assert listed() == 0, "not before they were looked up"
    intents = list(Intent.objects.order_by("pk"))
    assert all(intent.next_check_at and intent.next_check_at <= times.now() for intent in intents)
    for intent in intents:
        world.check(intent)
    world.sweep()
    assert listed() == Review.objects.filter(closed_at=None).count()
    for review in Review.objects.filter(closed_at=None):
        assert_close(review.due_at, due[review.pk] + timedelta(hours=1))


@pytest.mark.parametrize("when", ["after the outage", "while it lasts"])
def test_what_it_stood_still_for_survives_being_put_aside_and_taken_up_again(world: World, when: str) -> None:
    (review,) = cases(world, 1)
    due = review.due_at
    outage(world)
    world.sweep()
    Intent.objects.update(next_check_at=None)
    world.later(3_600)
    if when == "after the outage":
        end(world)
        world.sweep()
        assert_close(Review.objects.get().due_at, due + timedelta(hours=1))
    person, until = make_person(), times.now() + timedelta(days=2)
    for _ in range(2):
        waiting.put_aside(
            review.pk, person=person, waits_for=WaitsFor.BANK, reference="", until=until, longest=until, note=""
        )
        assert Review.objects.get().due_at == until
        waiting.resume(review.pk, person=person)
        assert_close(Review.objects.get().due_at, due + timedelta(hours=1))


def test_putting_a_case_aside_again_and_again_while_an_outage_lasts_counts_none_of_it_twice(world: World) -> None:
    (review,) = cases(world, 1)
    due = review.due_at
    outage(world)
    person, longest = make_person(), times.now() + timedelta(days=1)
    for _ in range(3):
        world.sweep()
        assert Review.objects.get().incident is not None
        world.later(1_200)
        until = times.now() + timedelta(minutes=1)
        waiting.put_aside(
            review.pk, person=person, waits_for=WaitsFor.BANK, reference="", until=until, longest=longest, note=""
        )
        waiting.resume(review.pk, person=person)
        claiming.disown(review.pk, person=person)
    found = Review.objects.get()
    assert abs(found.stood_still - timedelta(hours=1)) < timedelta(seconds=30)
    assert_close(found.due_at, due + timedelta(hours=1))


def test_the_other_line_that_ends_later_adds_only_what_was_not_counted(world: World) -> None:
    (review,) = cases(world, 1)
    due = review.due_at
    outage(world)
    for _ in range(10):
        breakers.unanswered(world.downstream, Line.LOOKING, now=times.now())
    world.sweep()
    for line in (Line.SENDING, Line.LOOKING):
        world.later(1_800)
        end(world, line)
        Intent.objects.update(next_check_at=None)
        world.sweep()
    found = Review.objects.get()
    assert found.incident is None
    assert_close(found.due_at, due + timedelta(hours=1))


def assert_close(one: datetime, other: datetime) -> None:
    assert abs(one - other) < timedelta(seconds=30), (one, other)


def test_what_the_look_settles_is_never_seen_by_anybody(world: World) -> None:
    intents = [world.propose(f"order-{n}") for n in range(3)]
    for intent in intents:
        world.sandbox.order_fault(intent.subject, "lose_response")
    world.send()
    for intent in intents:
        case(world.read(intent), ReasonCode.STILL_UNKNOWN)
    Downstream.objects.update(breaker_after=1)
    if not Incident.objects.exists():
        outage(world)
    world.sweep()
    end(world)
    world.sweep()
    for intent in intents:
        world.check(intent)
    world.sweep()
    assert {world.read(intent).status for intent in intents} == {Status.CONFIRMED}
    assert Review.objects.filter(closed_at=None).count() == 0


def test_a_case_that_no_look_can_reach_is_let_go_at_once_and_one_whose_look_never_comes_after_ten_minutes(
    world: World,
) -> None:
    one, other = cases(world, 2)
    outage(world)
    world.sweep()
    Intent.objects.filter(pk=one.intent_id).update(next_check_at=None)
    end(world)
    world.sweep()
    assert list(Review.objects.filter(incident=None)) == [one]
    world.later(601)
    world.sweep()
    assert Review.objects.filter(incident=None).count() == 2
    assert other.pk in Review.objects.filter(incident=None).values_list("pk", flat=True)


def test_while_the_other_line_is_away_they_go_on_waiting(world: World) -> None:
    (review,) = cases(world, 1)
    outage(world)
    world.sweep()
    for _ in range(10):
        breakers.unanswered(world.downstream, Line.LOOKING, now=times.now())
    end(world)
    world.later(700)
    world.sweep()
    review.refresh_from_db()
    assert review.incident is not None
    assert review.incident.kind == IncidentKind.BOOKS
    end(world, Line.LOOKING)
    world.later(700)
    world.sweep()
    review.refresh_from_db()
    assert review.incident is None


def test_many_sweeps_at_once_equal_one(world: World) -> None:
    reviews = cases(world, 5)
    outage(world)
    in_threads(4, world.sweep)
    assert Review.objects.filter(incident__isnull=False).count() == 5
    end(world)
    world.later(700)
    in_threads(4, world.sweep)
    for review in reviews:
        before, version = review.due_at, review.version
        review.refresh_from_db()
        assert (review.incident, review.version) == (None, version + 1)
        assert review.due_at >= before


def test_an_answer_after_one_more_silence_closes_the_incident(world: World) -> None:
    propose(world, 5)
    answer(3, SILENT)
    world.later(6)
    answer(1, reply(422, b"{}"))
    assert Incident.objects.get().closed_at is not None
    outage(world)
    assert Incident.objects.filter(closed_at=None).count() == 1
    assert Incident.objects.count() == 2


def test_a_dead_ledger_burns_no_looks_and_is_probed(world: World) -> None:
    intents = propose(world, 8)
    Downstream.objects.update(breaker_after=100, max_look_ups=3)
    answer(8, SILENT)
    Downstream.objects.update(breaker_after=3)
    world.later(2)
    claimed = checks.claim(limit=10)
    assert len(claimed) == 3, "no more at once than the downstream takes"
    assert checks.claim(limit=10) == []
    for one in claimed:
        checks.act(one, checks.Looked(pages=(), problem="http_error: 503"))
    assert Incident.objects.get(closed_at=None).kind == IncidentKind.BOOKS
    world.later(1)
    assert (checks.claim(limit=10), checks.anything_due(times.now())) == ([], False)
    made = Intent.objects.filter(checks_made__gt=0).count()
    world.later(10)
    (probe,) = checks.claim(limit=10)
    assert made == 3, "the others have lost none of their looks"
    checks.act(probe, checks.look(probe))
    assert Incident.objects.get().closed_at is not None
    assert len(checks.claim(limit=10)) == 3
    assert len(intents) == 8


def test_a_look_that_fails_by_our_own_fault_says_nothing_of_the_books(world: World) -> None:
    propose(world, 4)
    answer(3, reply(500, b"{}"))
    breakers.answered(world.downstream, Line.SENDING, now=times.now())
    world.later(2)
    for one in checks.claim(limit=10):
        checks.act(one, checks.Looked(pages=(), problem="connector_error: KeyError"))
    assert not Incident.objects.filter(closed_at=None).exists()


def test_a_downstream_with_many_looks_due_keeps_no_other_from_its_turn(world: World) -> None:
    Downstream.objects.update(breaker_after=100, max_look_ups=2)
    propose(world, 8)
    answer(8, SILENT)
    other = make_intent(make_kind(make_downstream()), to=Status.RECORDED)
    Intent.objects.filter(pk=other.pk).update(status=Status.UNKNOWN, next_check_at=times.now())
    world.later(2)
    assert other.pk in [one.intent_id for one in checks.claim(limit=3)]
