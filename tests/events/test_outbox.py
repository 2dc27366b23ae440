"""Every change of an intent has its event, in the same transaction, in the order of commits."""

import threading
from typing import Any

import pytest
from django.db import connection, transaction

from actions import events, feed, positions, times, transitions, withdrawing
from actions.models import Event, EventType, Result, SettledBy
from actions.reasons import Reason
from actions.statuses import TRANSITIONS, Actor, Status
from reconciliation.models import ClosedHow, Review
from reconciliation.reviews import deciding, opening
from tests.core.life import whole_life
from tests.core.steps import answer, race, read, settle, submit
from tests.factories import make_agent, make_intent, make_kind, make_person


def types_of(intent: Any) -> list[str]:
    return list(Event.objects.filter(intent=intent).order_by("id").values_list("type", flat=True))


@pytest.mark.django_db
def test_a_transition_and_its_event_are_one_transaction() -> None:
    intent = make_intent()
    with pytest.raises(RuntimeError), transaction.atomic():
        submit(intent)
        raise RuntimeError
    assert (read(intent).status, types_of(intent)) == ("recorded", ["intent.recorded"])
    submit(intent)
    assert types_of(intent) == ["intent.recorded", "intent.submitted"]


@pytest.mark.django_db
def test_a_whole_life_is_told_in_its_order_with_the_sequence_of_each_transition() -> None:
    intent = whole_life()
    found = Event.objects.filter(intent=intent).order_by("id").values_list("type", "sequence", "intent_status")
    assert list(found) == [
        ("intent.recorded", 1, "recorded"),
        ("intent.submitted", 2, "submitted"),
        ("intent.unknown", 3, "unknown"),
        ("review.opened", None, ""),
        ("intent.settled", 4, "confirmed"),
        ("review.decided", None, ""),
    ]


@pytest.mark.django_db
def test_what_is_disputed_and_corrected_is_told() -> None:
    intent = settle(make_intent(), Status.CONFIRMED)
    with transaction.atomic():
        opening.dispute(intent, now=times.now())
    assert types_of(intent)[-2:] == ["intent.disputed", "review.opened"]
    assert Event.objects.get(intent=intent, type="intent.disputed").intent_status == "confirmed"
    with transaction.atomic():
        opening.close(intent, ClosedHow.EVIDENCE, now=times.now())
    assert types_of(intent)[-1] == "review.closed"
    transitions.apply(
        intent.pk,
        expected=Status.CONFIRMED,
        to=Status.FAILED,
        actor=Actor.ADMINISTRATOR,
        actor_id="person:1",
        reason=Reason.OVERRIDDEN,
        settled_by=SettledBy.OVERRIDE,
        disputed=False,
        guard_key=None,
    )
    assert types_of(intent)[6:] == ["intent.corrected"]


@pytest.mark.django_db
def test_a_rejected_proposal_is_decided_and_settled() -> None:
    intent = make_intent(to=Status.HELD, hold_reasons="approval")
    review = Review.objects.select_related("intent").get(intent=intent)
    deciding.decide(
        review.pk,
        person=make_person("supervisor"),
        choice=deciding.Choice.REJECT,
        reason=deciding.DecisionReason.OTHER,
        note="No.",
        seen=deciding.seen(review),
    )
    assert types_of(intent) == ["intent.held", "review.opened", "intent.settled", "review.decided"]


def test_every_transition_of_the_table_has_a_type() -> None:
    for from_, to in TRANSITIONS:
        corrects = from_ is not None and from_ in (Status.CONFIRMED, Status.FAILED)
        assert (events.type_of(from_ or "", to) == EventType.CORRECTED) is corrects


@pytest.mark.django_db
def test_positions_are_given_once_without_gaps_and_cost_one_query_when_there_is_nothing_to_do(
    django_assert_num_queries: Any,
) -> None:
    settle(make_intent(), Status.FAILED)
    assert positions.stamp() == 3
    with django_assert_num_queries(1):
        assert positions.stamp() == 0
    make_intent()
    positions.stamp()
    assert list(Event.objects.order_by("id").values_list("position", flat=True)) == [1, 2, 3, 4]
    assert positions.head() == 4


@pytest.mark.django_db(transaction=True)
def test_who_inserts_first_and_commits_last_comes_last() -> None:
    """A reader who has seen a position never finds a new event at or before it."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite has one writer at a time: inserting and committing have one order")
    slow, quick = make_intent(), make_intent()
    positions.stamp()
    inserted, seen = threading.Event(), threading.Event()

    def act(index: int) -> Any:
        if index == 0:
            with transaction.atomic():
                submit(slow)
                inserted.set()
                assert seen.wait(10)
            return None
        assert inserted.wait(10)
        submit(quick)
        positions.stamp()
        page = feed.page([quick.agent_id, slow.agent_id], after=2, limit=50)
        seen.set()
        return page

    _, page = race(2, act)
    assert [one.intent_id for one in page.events] == [quick.pk]
    slow_event = Event.objects.get(intent=slow, type="intent.submitted")
    assert slow_event.pk < page.events[0].pk, "it was inserted first"
    positions.stamp()
    later = feed.page([quick.agent_id, slow.agent_id], after=page.next, limit=50)
    assert [one.intent_id for one in later.events] == [slow.pk]


@pytest.mark.django_db(transaction=True)
def test_writers_stampers_and_a_reader_at_once_miss_nothing() -> None:
    kind = make_kind()
    agent = make_agent(kind)
    make_intent(kind, agent)  # the policy's snapshot
    read_: list[int] = []

    def act(index: int) -> None:
        if index < 4:
            for _ in range(8):
                submit(make_intent(kind, agent))
            return
        after = 0
        for _ in range(40):
            positions.stamp()
            page = feed.page([agent.pk], after=after, limit=5)
            if index == 4:
                read_.extend(one.pk for one in page.events)
            after = page.next

    assert race(6, act) == [None] * 6
    after = Event.objects.get(pk=read_[-1]).position if read_ else 0
    positions.stamp()
    read_ += [one.pk for one in feed.page([agent.pk], after=after or 0, limit=500).events]
    assert sorted(read_) == sorted(Event.objects.values_list("pk", flat=True))
    stamped = list(Event.objects.order_by("position").values_list("position", flat=True))
    assert stamped == list(range(1, 66))


@pytest.mark.django_db
def test_cancelling_and_refusing_are_settled_alike() -> None:
    intent = make_intent()
    withdrawing.cancel(intent.pk, actor=Actor.AGENT, actor_id="agent:1", reason=Reason.CANCELLED_BY_AGENT)
    refused = make_intent()
    answer(submit(refused), Result.REFUSED)
    assert types_of(intent)[-1] == types_of(refused)[-1] == "intent.settled"
