"""In process: an outbox for services that have their own tables, and callers who send themselves."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import django_rq
import pytest
from django.db import transaction

from actions import history, services
from actions.errors import (
    InsideTransaction,
    Invalid,
    KeyReused,
    MayHaveHappened,
    NotApproved,
    NotExecutedByCaller,
    NotFound,
    TooLate,
)
from actions.models import Attempt, Evidence, Intent, Transition
from tests.core.steps import expire, read
from tests.factories import make_agent, make_intent, make_kind

pytestmark = pytest.mark.django_db(transaction=True)


def ask(kind: Any = None, **fields: Any) -> Intent:
    found = {"kind": (kind or make_kind()).name, "subject": "order-1", "amount": "50.00", "currency": "EUR"}
    return services.record_intent(**(found | {"executor": "landed"} | fields))


def rings() -> int:
    return int(django_rq.get_queue("send").count)


def test_it_is_recorded_by_the_built_in_application_and_a_worker_is_rung_for() -> None:
    intent = ask()
    assert (intent.status, intent.agent.name, intent.agent.built_in) == ("recorded", "application", True)
    assert intent.transitions.get().actor == "application"
    assert rings() == 1


def test_inside_a_transaction_that_is_rolled_back_nothing_is_left_and_nothing_rings() -> None:
    kind = make_kind()

    class Changed(Exception):
        pass

    def my_work() -> None:
        with transaction.atomic():
            ask(kind)
            assert rings() == 0, "never before the commit"
            raise Changed

    with pytest.raises(Changed):
        my_work()
    assert Intent.objects.count() == Transition.objects.count() == 0
    assert rings() == 0


def test_inside_a_transaction_it_rings_after_the_commit() -> None:
    kind = make_kind()
    with transaction.atomic():
        ask(kind)
        assert rings() == 0
    assert rings() == 1
    assert Intent.objects.count() == 1


def test_who_sends_themselves_can_t_record_inside_an_open_transaction() -> None:
    kind = make_kind()
    with transaction.atomic(), pytest.raises(InsideTransaction, match="rollback"):
        ask(kind, executor="caller")
    assert Intent.objects.count() == 0


def test_it_returns_only_when_this_call_may_send() -> None:
    intent = ask(executor="caller")
    assert read(intent).status == "submitted"
    assert Attempt.objects.get().closed_at is None
    assert rings() == 0, "nobody else is to send it"


def test_a_second_call_for_the_same_is_told_that_it_may_have_happened() -> None:
    """A crash between the sending and its report: the next run may not send again."""
    kind = make_kind()
    first = ask(kind, executor="caller", request_key="r-1")
    with pytest.raises(MayHaveHappened) as told:
        ask(kind, executor="caller", request_key="r-1")
    assert told.value.details["intent"].pk == first.pk
    expire(first)
    with pytest.raises(MayHaveHappened):
        ask(kind, executor="caller", request_key="r-1")
    services.mark_confirmed(first.pk, {"id": "re_1"})
    with pytest.raises(MayHaveHappened):
        ask(kind, executor="caller", request_key="r-1")
    assert Attempt.objects.count() == 1


def test_after_a_proven_not_sent_the_next_call_may_send() -> None:
    kind = make_kind()
    first = ask(kind, executor="caller", request_key="r-1")
    services.mark_not_sent(first.pk, "connection refused")
    again = ask(kind, executor="caller", request_key="r-1")
    assert (again.pk, again.status, again.fence) == (first.pk, "submitted", 2)
    assert again.idempotency_key == first.idempotency_key, "one key for life"


@pytest.mark.parametrize("executor", ["caller", "landed"])
def test_what_a_person_must_approve_is_recorded_and_not_sent(executor: str) -> None:
    kind = make_kind(limits={})
    if executor == "landed":
        assert ask(kind).status == "held"
    else:
        for _ in range(2):
            with pytest.raises(NotApproved):
                ask(kind, executor="caller", request_key="r-1")
    assert Intent.objects.get().status == "held"
    assert not Attempt.objects.exists()


def test_floats_have_no_exact_value_and_are_refused() -> None:
    with pytest.raises(Invalid, match="float"):
        ask(amount=50.1)
    assert ask(amount=Decimal("50.10")).amount_minor == 5_010
    assert ask(amount=50, subject="order-2").amount_minor == 5_000


def test_another_payload_under_the_same_request_key_is_refused() -> None:
    kind = make_kind()
    ask(kind, request_key="r-1")
    with pytest.raises(KeyReused):
        ask(kind, request_key="r-1", amount="51.00")


def test_the_executor_must_be_said() -> None:
    with pytest.raises(TypeError):
        services.record_intent(kind=make_kind().name, subject="order-1")  # type: ignore[call-arg]


MARKS: list[tuple[str, Callable[[Intent], Intent]]] = [
    ("confirmed", lambda intent: services.mark_confirmed(intent.pk, {"id": "re_1", "amount": 50.1})),
    ("failed", lambda intent: services.mark_failed(intent.pk, {"status": 422})),
    ("unknown", lambda intent: services.mark_unknown(intent.pk, TimeoutError("slow"))),
    ("recorded", lambda intent: services.mark_not_sent(intent.pk, "connection refused")),
]


@pytest.mark.parametrize(("status", "mark"), MARKS)
def test_what_the_caller_marks_is_kept_as_evidence_and_believed(
    status: str, mark: Callable[[Intent], Intent]
) -> None:
    intent = ask(executor="caller")
    assert mark(intent).status == status
    found = read(intent)
    assert found.status == status
    assert Evidence.objects.get(intent=intent).kind == "report"
    last = found.transitions.last()
    assert last is not None
    assert last.evidence != "[]"
    assert history.faults(found) == []


def test_the_result_of_the_call_names_the_external_id() -> None:
    class Refund:
        id = "re_2"

    one, other = ask(executor="caller"), ask(executor="caller", subject="order-2")
    assert services.mark_confirmed(one.pk, {"id": "re_1"}).external_id == "re_1"
    assert services.mark_confirmed(other.pk, Refund()).external_id == "re_2"


@pytest.mark.parametrize(("status", "mark"), MARKS)
def test_marks_on_an_intent_that_landed_sends_raise_and_change_nothing(
    status: str, mark: Callable[[Intent], Intent]
) -> None:
    intent = ask()
    before = Intent.objects.filter(pk=intent.pk).values().get()
    with pytest.raises(NotExecutedByCaller):
        mark(intent)
    assert Intent.objects.filter(pk=intent.pk).values().get() == before
    assert not Evidence.objects.exists()


def test_a_refusal_without_an_answer_is_not_taken() -> None:
    intent = ask(executor="caller")
    for nothing in (None, ""):
        with pytest.raises(Invalid):
            services.mark_failed(intent.pk, nothing)
    assert read(intent).status == "submitted"


def test_the_same_mark_twice_is_one() -> None:
    intent = ask(executor="caller")
    services.mark_confirmed(intent.pk, {"id": "re_1"})
    version = read(intent).version
    services.mark_confirmed(intent.pk, {"id": "re_1"})
    assert read(intent).version == version


def test_a_mark_after_the_lease_was_over_still_counts() -> None:
    intent = ask(executor="caller")
    expire(intent)
    assert services.mark_confirmed(intent.pk, {"id": "re_1"}).status == "confirmed"


def test_a_mark_without_an_attempt_is_refused() -> None:
    kind = make_kind()
    agent = make_agent(kind)
    intent = make_intent(kind, agent, executor="caller")
    with pytest.raises(NotFound):
        services.mark_confirmed(intent.pk, {"id": "re_1"})
    assert read(intent).status == "recorded"


def test_what_was_never_sent_can_be_withdrawn_and_what_may_have_been_can_t() -> None:
    intent = ask()
    assert services.cancel(intent.pk).status == "cancelled"
    assert services.cancel(intent.pk).version == 2, "twice is once"
    sent = ask(executor="caller", subject="order-2")
    with pytest.raises(TooLate):
        services.cancel(sent.pk)
    services.mark_not_sent(sent.pk, "so the caller says")
    with pytest.raises(TooLate):
        services.cancel(sent.pk)
    assert read(sent).status == "recorded"
