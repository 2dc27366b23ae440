"""Twenty at once can't pass a limit together."""

import time
from contextlib import suppress

import pytest
from django.db import transaction

from actions import services
from actions.errors import AgentPaused, LimitExceeded, UnsettledDuplicate
from actions.models import Agent, Intent
from actions.recording import Recorded
from reconciliation.models import Incident
from tests.core.steps import propose, race
from tests.factories import make_kind
from tests.limits.limiting import EUR, amounts, make_limited

pytestmark = pytest.mark.django_db(transaction=True)


def test_twenty_at_once_can_t_pass_the_sum() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000))
    results = race(20, lambda number: propose(agent, kind, amount="20.00", subject=f"order-{number}"))
    assert sorted(type(found).__name__ for found in results) == ["LimitExceeded"] * 15 + ["Recorded"] * 5
    assert Intent.objects.count() == 5


def test_two_lines_of_sixty_on_a_family_limit_of_a_hundred() -> None:
    agent, kind = make_limited(limits=amounts(per_subject_day=10_000))
    results = race(2, lambda number: propose(agent, kind, amount="60.00", subject=f"order-1/line-{number}"))
    assert {type(found) for found in results} == {Recorded, LimitExceeded}


def test_the_one_that_trips_the_velocity_is_told_and_the_others_meet_the_pause() -> None:
    agent, kind = make_limited(limits={"velocity": {"intents": 4, "minutes": 5}})
    results = race(12, lambda number: propose(agent, kind, subject=f"order-{number}"))
    names = [type(found).__name__ for found in results]
    assert sorted(names) == ["AgentPaused"] * 7 + ["LimitExceeded"] + ["Recorded"] * 4
    assert (Intent.objects.count(), Incident.objects.count()) == (4, 1)
    paused = Agent.objects.get(pk=agent.pk)
    assert (paused.paused, paused.pause_reason) == (True, "Proposed too fast: at most 4 proposals in 5 minutes.")
    with pytest.raises(AgentPaused):
        propose(paused, kind, subject="order-99")


def test_the_same_call_made_twice_at_once_trips_nothing() -> None:
    """The second waits for the agent's lock until the first is recorded: a replay, not one more."""
    agent, kind = make_limited(limits={"velocity": {"intents": 1, "minutes": 5}} | amounts(per_day=5_000))
    results = race(8, lambda _: propose(agent, kind, request_key="r-1"))
    assert [type(found).__name__ for found in results] == ["Recorded"] * 8
    assert Intent.objects.count() == 1
    assert not Agent.objects.get(pk=agent.pk).paused


def test_a_transaction_that_records_several_and_single_proposals_don_t_wait_in_a_circle() -> None:
    """The agent's lock comes before any family's: whoever waits for it holds nothing that the other could want."""
    agent, kind = make_limited(limits=amounts(per_day=10**9))
    propose(agent, kind, subject="order-0")  # the policy's snapshot is there already

    def act(number: int) -> int:
        with transaction.atomic():
            for subject in ("order-1", "order-2") if number % 2 else ("order-2", "order-1"):
                propose(agent, kind, subject=f"{subject}/line-{number}")
                time.sleep(0.02)
        return number

    assert race(4, act) == [0, 1, 2, 3]
    assert Intent.objects.count() == 9


def test_a_service_that_reports_one_and_records_the_next_waits_in_no_circle_either() -> None:
    kind = make_kind(limits=EUR, look_alike_policy="allow")
    services.application()
    Agent.objects.update(limits=amounts(per_day=10**9))
    about = {"kind": kind.name, "amount": "1.00", "currency": "EUR"}
    sent = services.record_intent(subject="order-1", executor="caller", **about)

    def act(number: int) -> int:
        if number:
            time.sleep(0.1)
            with suppress(UnsettledDuplicate):
                services.record_intent(subject="order-1/line-2", executor="landed", **about)
            return number
        with transaction.atomic():
            services.mark_unknown(sent.pk)
            time.sleep(0.25)
            services.record_intent(subject="order-2", executor="landed", **about)
        return number

    assert race(2, act) == [0, 1]
