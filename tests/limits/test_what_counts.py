"""What uses a limit up, what frees it, and whom it binds."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from actions import services, transitions, withdrawing
from actions.errors import AgentPaused, LimitExceeded, UnsettledDuplicate
from actions.models import Agent, Intent, Result, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from tests.core.steps import answer, propose, settle, submit
from tests.factories import make_kind
from tests.limits.limiting import amounts, ask, make_limited, refused

pytestmark = pytest.mark.django_db

DAY = amounts(per_day=10_000)


def cancel(intent: Intent) -> None:
    withdrawing.cancel(intent.pk, actor=Actor.AGENT, actor_id="agent:1", reason=Reason.CANCELLED_BY_AGENT)


def override(intent: Intent, to: Status) -> None:
    transitions.apply(
        intent.pk,
        expected=(Status.CONFIRMED, Status.FAILED),
        to=to,
        actor=Actor.ADMINISTRATOR,
        actor_id="person:1",
        reason=Reason.OVERRIDDEN,
        settled_by=SettledBy.OVERRIDE,
    )


def test_whatever_may_happen_may_have_happened_or_did_counts() -> None:
    agent, kind = make_limited(limits=DAY)
    intent = ask(agent, kind, "100.00")
    attempt = submit(intent)
    assert refused(agent, kind, "0.01").remaining == "0.00"
    answer(attempt, Result.NO_ANSWER)
    assert Intent.objects.get().status == Status.UNKNOWN
    refused(agent, kind, "0.01")
    answer(submit(intent), Result.CONFIRMED)
    refused(agent, kind, "0.01")
    override(intent, Status.FAILED)
    ask(agent, kind, "100.00")
    override(intent, Status.CONFIRMED)
    assert refused(agent, kind, "0.01").remaining == "0.00"


def test_failed_and_cancelled_free_it_and_what_is_held_does_not() -> None:
    agent, kind = make_limited(make_kind(limits={"EUR": {"approve_above": 5_000}}), limits=DAY)
    first = ask(agent, kind, "100.00")
    assert first.status == Status.HELD
    refused(agent, kind, "0.01")
    cancel(first)
    second = ask(agent, kind, "50.00")
    settle(second, Status.FAILED)
    third = ask(agent, kind, "100.00")
    refused(agent, kind, "0.01")
    cancel(third)
    Intent.objects.filter(pk=second.pk).update(disputed=True)
    assert refused(agent, kind, "50.01").remaining == "50.00"  # what failed may have happened after all


def test_it_counts_with_what_was_settled_when_that_is_more_of_the_same_currency() -> None:
    agent, kind = make_limited(limits=DAY)
    for settled in (
        {"settled_amount_minor": 6_000, "settled_currency": "EUR"},
        {"settled_amount_minor": 10, "settled_currency": "EUR"},
        {"settled_amount_minor": 9_999, "settled_currency": "JPY"},
    ):
        intent = ask(agent, kind, "10.00")
        settle(intent, Status.CONFIRMED)
        Intent.objects.filter(pk=intent.pk).update(**settled)
    assert refused(agent, kind, "20.01").remaining == "20.00"
    ask(agent, kind, "20.00")


def test_one_subject_and_its_parts_share_a_limit_of_their_own() -> None:
    agent, kind = make_limited(limits=amounts(per_subject_day=10_000))
    ask(agent, kind, "60.00", "order-1/line-1")
    error = refused(agent, kind, "60.00", "order-1/line-2")
    assert (error.limit or {})["name"] == "per_subject_day"
    assert error.remaining == "40.00"
    assert error.resets_at is not None
    ask(agent, kind, "60.00", "order-2")
    ask(agent, kind, "40.00", "order-1/line-2")


def test_many_small_ones_under_the_approval_limit_are_stopped_by_the_sum() -> None:
    kind = make_kind(limits={"EUR": {"approve_above": 5_000}}, look_alike_policy="allow")
    agent, kind = make_limited(kind, limits=amounts(per_subject_day=10_000))
    for _ in range(2):
        settle(ask(agent, kind, "49.99", "order-1"), Status.CONFIRMED)
    assert refused(agent, kind, "49.99", "order-1").remaining == "0.02"


def test_so_many_may_be_unsettled_at_a_time() -> None:
    agent, kind = make_limited(limits={"open": 2})
    first, _ = ask(agent, kind, "1.00"), ask(agent, kind, "1.00")
    error = refused(agent, kind, "1.00")
    assert error.limit == {
        "name": "open",
        "kind": None,
        "amount": None,
        "currency": None,
        "count": 2,
        "minutes": None,
    }
    assert (error.remaining, error.resets_at) == (0, None)
    settle(first, Status.CONFIRMED)
    ask(agent, kind, "1.00")


def test_zero_lets_nothing_through() -> None:
    for limits in (amounts(per_action=0), amounts(per_day=0), amounts(per_subject_day=0), {"open": 0}):
        agent, kind = make_limited(limits=limits)
        error = refused(agent, kind, "0.01")
        assert error.remaining in ("0.00", 0)
        assert error.resets_at is None


def test_a_limit_that_is_lowered_below_what_is_used_lets_nothing_through() -> None:
    agent, kind = make_limited(limits=DAY)
    first = ask(agent, kind, "60.00")
    Agent.objects.update(limits=amounts(per_day=5_000))
    # `agent` is as its token was looked at: before that.
    error = refused(agent, kind, "0.01")
    assert (error.limit or {})["amount"] == "50.00"
    assert error.remaining == "0.00"
    assert error.resets_at == first.created_at + timedelta(hours=24)
    agent.refresh_from_db()
    Agent.objects.update(paused=True)
    with pytest.raises(AgentPaused):
        ask(agent, kind, "1.00")


def test_a_kinds_own_limit_is_narrower_and_binds_that_kind_alone() -> None:
    one, other = (make_kind(limits={"EUR": {}}) for _ in range(2))
    limits = amounts(per_day=10_000) | {"kinds": {one.name: amounts(per_day=5_000) | {"open": 2}}}
    agent, _ = make_limited(one, limits=limits)
    agent.kinds.add(other)
    ask(agent, one, "50.00")
    error = refused(agent, one, "1.00")
    assert ((error.limit or {})["kind"], error.remaining) == (one.name, "0.00")
    ask(agent, other, "50.00")
    # Both would be passed; the one that gives way last is told.
    assert (refused(agent, one, "50.00").limit or {})["kind"] is None


def test_of_several_the_one_that_no_waiting_opens_is_told() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000) | {"open": 1})
    ask(agent, kind, "100.00")
    error = refused(agent, kind, "1.00")
    assert ((error.limit or {})["name"], error.resets_at) == ("open", None)


def test_a_currency_that_no_limit_names_is_held_for_a_person() -> None:
    kind = make_kind(limits={"EUR": {}, "JPY": {}, "KWD": {}})
    limits = {"amounts": {"EUR": {"per_day": 1_000}}, "kinds": {kind.name: {"amounts": {"JPY": {}}}}}
    agent, _ = make_limited(kind, limits=limits)
    held = ask(agent, kind, "1.000", currency="KWD")
    assert (held.status, held.hold_reasons) == (Status.HELD, "approval")
    assert ask(agent, kind, "100000", currency="JPY").status == Status.RECORDED
    assert ask(agent, kind, "10.00", currency="EUR").status == Status.RECORDED
    free, _ = make_limited(kind, limits={"open": 5})
    assert ask(free, kind, "1.000", currency="KWD").status == Status.RECORDED


def test_what_has_no_amount_is_bound_by_counts_alone() -> None:
    kind = make_kind(amount_rule="optional", limits={"EUR": {}})
    agent, _ = make_limited(kind, limits=amounts(per_action=0) | {"open": 1})
    intent = propose(agent, kind, amount=None, currency=None).intent
    assert intent.status == Status.RECORDED
    with pytest.raises(LimitExceeded):
        propose(agent, kind, amount=None, currency=None, subject="order-2")


def test_the_limit_is_looked_at_before_the_guard() -> None:
    agent, kind = make_limited(limits=DAY)
    ask(agent, kind, "60.00", "order-1")
    assert refused(agent, kind, "60.00", "order-1").code == "limit_exceeded"
    with pytest.raises(UnsettledDuplicate):
        ask(agent, kind, "40.00", "order-1")


def test_a_replay_is_never_counted_and_never_refused() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000) | {"velocity": {"intents": 1, "minutes": 5}})
    first = propose(agent, kind, amount="100.00", request_key="r-1")
    again = propose(agent, kind, amount="100.00", request_key="r-1")
    assert (again.replayed, again.intent.pk) == (True, first.intent.pk)
    assert not Agent.objects.get(pk=agent.pk).paused


def test_a_refused_request_key_can_be_used_again() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000))
    first = ask(agent, kind, "100.00")
    with pytest.raises(LimitExceeded):
        propose(agent, kind, amount="50.00", request_key="r-1")
    cancel(first)
    assert not propose(agent, kind, amount="40.00", request_key="r-1").replayed


def test_in_process_and_by_callers_it_counts_the_same(transactional_db: Any) -> None:
    kind = make_kind(limits={"EUR": {}})
    application = services.application()
    Agent.objects.filter(pk=application.pk).update(limits=amounts(per_day=10_000))
    services.record_intent(kind=kind.name, subject="order-1", amount="50.00", currency="EUR", executor="caller")
    with pytest.raises(LimitExceeded) as caught:
        services.record_intent(kind=kind.name, subject="order-2", amount="50.01", currency="EUR", executor="landed")
    assert caught.value.remaining == "50.00"
    with pytest.raises(RuntimeError), transaction.atomic():
        services.record_intent(kind=kind.name, subject="order-2", amount="50.00", currency="EUR", executor="landed")
        raise RuntimeError("rolled back")
    services.record_intent(kind=kind.name, subject="order-3", amount="50.00", currency="EUR", executor="landed")
