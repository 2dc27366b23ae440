"""The one writer of status: all of a change or nothing of it, and the second one is told."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import history, hooks, times, transitions
from actions.errors import ForbiddenTransition, StaleTransition
from actions.models import Intent, Result, Transition
from actions.reasons import Reason
from actions.statuses import SETTLED, Actor, Status
from reconciliation.models import Review
from tests.core.steps import answer, expire, race, read, settle, submit
from tests.core.test_statuses import ACTORS, RIGHT
from tests.factories import make_downstream, make_intent, make_kind

pytestmark = pytest.mark.django_db


def apply(intent: Intent, **changes: Any) -> Intent:
    found: dict[str, Any] = {
        "expected": Status.RECORDED,
        "to": Status.SUBMITTED,
        "actor": Actor.WORKER,
        "actor_id": "worker:test/1",
        "reason": Reason.CLAIMED,
    }
    return transitions.apply(intent.pk, **(found | changes))


def everything(intent: Intent) -> tuple[Any, ...]:
    """The whole row and its history, to see that nothing of either changed."""
    return (
        Intent.objects.filter(pk=intent.pk).values().get(),
        list(Transition.objects.filter(intent=intent).values()),
    )


def test_a_change_moves_status_reason_time_version_and_history_together() -> None:
    intent = make_intent()
    found = apply(intent, new_fence=1)
    assert found.status == "submitted"
    intent = read(intent)
    row = Transition.objects.get(intent=intent, sequence=2)
    assert (intent.status, intent.status_reason, intent.version, intent.fence) == ("submitted", "claimed", 2, 1)
    assert (row.from_status, row.to_status, row.actor, row.actor_id) == (
        "recorded",
        "submitted",
        "worker",
        "worker:test/1",
    )
    assert intent.status_since == intent.updated_at == row.at
    assert (intent.chain_length, intent.chain_head) == (2, row.digest)
    assert history.faults(intent) == []


@pytest.mark.parametrize(
    "stale",
    [
        {"expected": Status.HELD},
        {"expected": (Status.SUBMITTED, Status.UNKNOWN), "to": Status.CONFIRMED},
        {"fence": 7},
        {"version": 2},
        {"version": 0},
        {"expected": ()},
    ],
)
def test_a_stale_expectation_raises_and_changes_nothing(stale: dict[str, Any]) -> None:
    intent = make_intent()
    before = everything(intent)
    with pytest.raises(StaleTransition):
        apply(intent, **stale)
    assert everything(intent) == before


def test_the_update_itself_names_status_fence_and_version() -> None:
    """Rule 7: one conditional UPDATE; what was read before it is not what protects it."""
    intent = make_intent()
    with CaptureQueriesContext(
        connection,
    ) as seen:
        apply(intent)
    (update,) = [q["sql"] for q in seen.captured_queries if q["sql"].startswith('UPDATE "actions_intent"')]
    where = update.split(" WHERE ")[1]
    assert all(f'"{name}" = ' in where for name in ("id", "status", "fence", "version"))


def test_somebody_who_writes_between_reading_and_updating_makes_it_stale(monkeypatch: pytest.MonkeyPatch) -> None:
    intent = make_intent()
    real = transitions._what_follows

    def meddle(found: Intent, to: Status, at: Any) -> Any:
        Intent.objects.filter(pk=found.pk).update(fence=5)
        return real(found, to, at)

    monkeypatch.setattr(transitions, "_what_follows", meddle)
    with pytest.raises(StaleTransition):
        apply(intent)
    assert Transition.objects.filter(intent=intent).count() == 1


@pytest.mark.parametrize("pair", sorted(RIGHT))
@pytest.mark.parametrize("actor", ACTORS)
def test_a_role_that_the_table_does_not_name_is_refused(pair: tuple[str, str], actor: str) -> None:
    from_, to = pair
    if actor in RIGHT[pair] or not from_:
        return
    intent = _in_status(Status(from_))
    before = everything(intent)
    with pytest.raises(ForbiddenTransition):
        apply(intent, expected=Status(from_), to=Status(to), actor=Actor(actor))
    assert everything(intent) == before


def _in_status(status: Status) -> Intent:
    if status in (Status.HELD, Status.RECORDED):
        return make_intent(to=status)
    intent = make_intent()
    submit(intent)
    if status is Status.UNKNOWN:
        expire(intent)
    elif status in (Status.CONFIRMED, Status.FAILED):
        result = Result.CONFIRMED if status is Status.CONFIRMED else Result.REFUSED
        answer(intent.attempts.get(), result)
    return read(intent)


@pytest.mark.parametrize("actor", ["worker", "checker", "clock", "reviewer", "administrator", "caller"])
def test_only_who_proposes_may_begin_an_intent(actor: str) -> None:
    intent = make_intent()
    copy = Intent.objects.get(pk=intent.pk)
    copy.pk, copy.guard_key, copy.idempotency_key = None, None, "another"
    with pytest.raises(ForbiddenTransition):
        transitions.create(
            copy, to=Status.RECORDED, actor=Actor(actor), actor_id="x:1", reason="recorded", now=times.now()
        )
    assert Intent.objects.count() == 1


@contextmanager
def listening(listener: Any) -> Iterator[None]:
    hooks.listeners.transition.append(listener)
    try:
        yield
    finally:
        hooks.listeners.transition.remove(listener)


class Refusal(Exception):
    pass


def _refuse(*_: Any) -> None:
    raise Refusal


def test_a_listener_that_raises_undoes_status_and_history() -> None:
    intent = make_intent()
    before = everything(intent)
    with listening(_refuse), pytest.raises(Refusal):
        apply(intent)
    assert everything(intent) == before
    assert history.faults(read(intent)) == []


def test_a_listener_that_raises_undoes_the_recording() -> None:
    with listening(_refuse), pytest.raises(Refusal):
        make_intent()
    assert Intent.objects.count() == Transition.objects.count() == 0


def test_listeners_hear_of_a_change_inside_its_transaction_when_both_are_written() -> None:
    heard: list[Any] = []

    def listener(intent: Intent, row: Transition) -> None:
        assert connection.in_atomic_block
        heard.append((read(intent).status, Transition.objects.get(pk=row.pk).to_status))

    with listening(listener):
        apply(make_intent())
    assert heard == [("recorded", "recorded"), ("submitted", "submitted")]


def test_history_that_can_t_be_written_undoes_the_status(monkeypatch: pytest.MonkeyPatch) -> None:
    intent = make_intent()
    before = everything(intent)
    monkeypatch.setattr(Transition, "save", lambda *_, **__: _refuse())
    with pytest.raises(Refusal):
        apply(intent)
    monkeypatch.undo()
    assert everything(intent) == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("number", [2, 6])
def test_of_racing_threads_exactly_one_wins(number: int) -> None:
    intent = make_intent()
    results = race(number, lambda index: apply(intent, actor_id=f"worker:test/{index}", new_fence=1))
    won = [found for found in results if isinstance(found, Intent)]
    assert len(won) == 1
    assert [type(found) for found in results if found is not won[0]] == [StaleTransition] * (number - 1)
    intent = read(intent)
    assert (intent.status, intent.version, intent.fence) == ("submitted", 2, 1)
    assert history.faults(intent) == []


@pytest.mark.django_db(transaction=True)
def test_two_opposite_conclusions_never_both_happen() -> None:
    intent = make_intent()
    submit(intent)
    expire(intent)

    def conclude(index: int) -> Intent:
        return apply(
            intent,
            expected=(Status.SUBMITTED, Status.UNKNOWN),
            to=Status.CONFIRMED if index % 2 else Status.FAILED,
            actor=Actor.CHECKER,
            settled_by="ledger",
        )

    results = race(4, conclude)
    assert sum(isinstance(found, Intent) for found in results) == 1
    assert Transition.objects.filter(intent=intent, to_status__in=SETTLED).count() == 1
    assert history.faults(read(intent)) == []


@pytest.mark.parametrize("to", [Status.CONFIRMED, Status.FAILED])
def test_settling_clears_the_guard_and_everything_that_was_due(to: Status) -> None:
    intent = make_intent()
    assert intent.guard_key is not None
    found = settle(intent, to)
    intent = read(intent)
    assert (intent.status, intent.guard_key, found.guard_key) == (to, None, None)
    due = (intent.lease_until, intent.next_attempt_at, intent.next_check_at, intent.approve_before)
    assert due == (None, None, None, None)
    assert intent.settled_at == intent.status_since


def test_cancelling_says_that_nothing_was_sent_and_frees_the_subject() -> None:
    intent = make_intent(to=Status.HELD, approve_before=times.now())
    apply(intent, expected=Status.HELD, to=Status.CANCELLED, actor=Actor.AGENT, reason=Reason.CANCELLED_BY_AGENT)
    intent = read(intent)
    assert (intent.settled_by, intent.guard_key, intent.approve_before) == ("nothing_sent", None, None)


@pytest.mark.parametrize("look_up", ["key", "subject", "both"])
def test_what_becomes_unknown_is_looked_up_on_its_schedule(look_up: str) -> None:
    kind = make_kind(make_downstream(look_up=look_up), check_schedule=[7, 60])
    intent = make_intent(kind)
    submit(intent)
    Intent.objects.filter(pk=intent.pk).update(checks_made=9)
    expire(intent)
    intent = read(intent)
    assert intent.next_check_at == intent.status_since + timedelta(seconds=7)
    assert (intent.lease_until, intent.checks_made) == (None, 0)
    assert intent.guard_key is not None, "unknown blocks"


def test_what_becomes_unknown_without_any_look_up_goes_to_a_person_at_once() -> None:
    intent = make_intent(make_kind(make_downstream(look_up="none", absence_conclusive=False)))
    submit(intent)
    expire(intent)
    assert read(intent).next_check_at is None
    assert Review.objects.get(intent=intent).closed_at is None


def test_an_earlier_lease_ends_with_the_status_that_it_belonged_to() -> None:
    intent = make_intent()
    answer(submit(intent), Result.NOT_SENT)
    intent = read(intent)
    assert (intent.status, intent.lease_until) == ("recorded", None)


@pytest.mark.parametrize("column", [{"status": "confirmed"}, {"version": 9}, {"status": "held", "note": "x"}])
def test_note_refuses_to_touch_the_status(column: dict[str, Any]) -> None:
    intent = make_intent()
    before = everything(intent)
    with pytest.raises((AssertionError, TypeError, ValueError)):
        transitions.note(intent.pk, **column)
    assert everything(intent) == before


def test_note_changes_nothing_under_another_fence() -> None:
    intent = make_intent()
    assert transitions.note(intent.pk, fence=1, external_id="re_1") is False
    assert read(intent).external_id == ""
    assert transitions.note(intent.pk, fence=0, external_id="re_1") is True
    assert read(intent).external_id == "re_1"
