"""Twenty at once: one intent."""

import threading
import time

import pytest
from django.db import transaction

from actions.errors import UnsettledDuplicate
from actions.models import Intent, Transition
from actions.recording import Recorded
from tests.core.steps import propose, race
from tests.factories import make_agent, make_kind

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("policy", ["refuse", "hold"])
def test_twenty_with_one_request_key_are_one_intent_and_all_are_told_of_it(policy: str) -> None:
    """A client that asks again before it was answered must not be told that it is its own duplicate."""
    kind = make_kind(duplicate_policy=policy)
    agent = make_agent(kind)
    results = race(20, lambda _: propose(agent, kind, request_key="r-1"))
    assert [type(found).__name__ for found in results] == ["Recorded"] * 20
    recorded = [found for found in results if isinstance(found, Recorded)]
    assert len({found.intent.pk for found in recorded}) == 1
    assert sum(not found.replayed for found in recorded) == 1
    assert Intent.objects.count() == Transition.objects.count() == 1


def test_twenty_on_one_subject_are_one_intent_and_nineteen_refusals() -> None:
    kind = make_kind()
    agent = make_agent(kind)
    results = race(20, lambda index: propose(agent, kind, request_key=f"r-{index}"))
    assert sum(isinstance(found, Recorded) for found in results) == 1
    assert sum(isinstance(found, UnsettledDuplicate) for found in results) == 19
    assert Intent.objects.count() == 1


def test_parent_and_parts_at_once_never_both_hold_the_guard() -> None:
    kind = make_kind()
    agent = make_agent(kind)
    names = ["order-1", "order-1/line-1", "order-1/line-1/part-1"]
    results = race(9, lambda index: propose(agent, kind, subject=names[index % 3]))
    assert sum(isinstance(found, Recorded) for found in results) == 1
    assert Intent.objects.count() == 1


@pytest.mark.parametrize(("first", "second"), [("order-1", "order-1/line-1"), ("order-1/line-1", "order-1")])
def test_a_part_waits_for_its_parent_that_is_being_recorded(first: str, second: str) -> None:
    """Neither sees the other's row before its commit, and no unique index knows that they are related."""
    kind = make_kind()
    agent = make_agent(kind)
    propose(agent, kind, subject="order-2")  # the policy's snapshot is there already: nothing else makes one wait
    recorded = threading.Event()

    def act(index: int) -> Recorded:
        if index:
            recorded.wait(10)
            return propose(agent, kind, subject=second)
        with transaction.atomic():
            found = propose(agent, kind, subject=first)
            recorded.set()
            time.sleep(0.4)
        return found

    won, refused = race(2, act)
    assert isinstance(won, Recorded)
    assert isinstance(refused, UnsettledDuplicate)
    assert Intent.objects.filter(family="order-1").count() == 1


def test_under_hold_one_of_twenty_has_the_guard() -> None:
    kind = make_kind(duplicate_policy="hold")
    agent = make_agent(kind)
    results = race(20, lambda _: propose(agent, kind))
    assert [type(found).__name__ for found in results] == ["Recorded"] * 20
    assert Intent.objects.filter(guard_key__isnull=False).count() == 1
    assert Intent.objects.filter(status="held").count() == 19


def test_different_subjects_don_t_hinder_each_other() -> None:
    kind = make_kind()
    agent = make_agent(kind)
    results = race(12, lambda index: propose(agent, kind, subject=f"order-{index}"))
    assert all(isinstance(found, Recorded) for found in results)
    assert Intent.objects.count() == 12
