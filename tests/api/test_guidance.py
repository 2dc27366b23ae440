"""The wording and the hints: what a model may be told, in every situation there can be."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from actions import guidance
from actions.guidance import Situation, Step
from actions.reasons import Reason
from actions.statuses import SETTLED, Status

NOW = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
times_around = st.none() | st.integers(-100_000, 100_000).map(lambda s: NOW + timedelta(seconds=s))

situations = st.builds(
    Situation,
    status=st.sampled_from(Status),
    reason=st.sampled_from([reason.value for reason in Reason]) | st.just("from_the_future"),
    now=st.just(NOW),
    by_caller=st.booleans(),
    disputed=st.booleans(),
    review_open=st.booleans(),
    review_due_at=times_around,
    own=st.booleans(),
    may_send=st.booleans(),
    stopped=st.booleans(),
    attempt_open=st.booleans(),
    effect_elsewhere=st.booleans(),
    lease_until=times_around,
    send_before=times_around,
    next_attempt_at=times_around,
    next_check_at=times_around,
)


def at(status: Status, **more: object) -> Situation:
    return Situation(status=status, reason="", now=NOW, **more)  # type: ignore[arg-type]


@given(situations)
def test_failed_is_said_of_what_is_settled_as_failed_and_of_nothing_else(found: Situation) -> None:
    texts = [guidance.message(found).lower(), guidance.customer_message(found, {}).lower()]
    if found.status is not Status.FAILED or found.disputed:
        assert not any("fail" in text for text in texts)
    assert not any("try again" in text or "retry" in text for text in texts)


@given(situations)
def test_an_unknown_one_may_have_happened_is_not_to_be_repeated_and_has_a_next_step(found: Situation) -> None:
    if found.status is Status.UNKNOWN or found.disputed:
        text = guidance.message(found)
        assert "may have happened" in text
        assert "repeat will be refused" in text
        assert "this record" in text
        assert guidance.may_propose_again(found) is False


@given(situations)
def test_there_is_a_time_to_ask_again_while_it_is_open_and_it_lies_ahead(found: Situation) -> None:
    asked = guidance.ask_again_at(found)
    if found.status in SETTLED and not found.disputed:
        assert asked is None
    else:
        assert asked is not None
        assert NOW + timedelta(seconds=1) <= asked <= NOW + timedelta(hours=1)


@given(situations)
def test_done_is_said_exactly_of_what_is_settled_and_undisputed(found: Situation) -> None:
    assert (guidance.next_step(found) is Step.DONE) == (found.status in SETTLED and not found.disputed)


@given(situations)
def test_only_its_own_caller_is_told_to_send_and_never_what_may_have_been_sent(found: Situation) -> None:
    if guidance.next_step(found) is Step.SEND:
        assert found.by_caller
        assert found.own
        assert found.may_send or found.status is Status.RECORDED
    assert guidance.next_step_after_refusal(found) in (Step.WAIT, Step.WAIT_FOR_PERSON)


@given(situations)
def test_proposing_again_is_offered_only_where_nothing_can_have_happened(found: Situation) -> None:
    if guidance.may_propose_again(found):
        assert found.status in (Status.FAILED, Status.CANCELLED)
        assert not any([found.disputed, found.effect_elsewhere, found.review_open])
        if found.status is Status.CANCELLED:
            assert found.reason in ("cancelled_by_agent", "expired", "approval_expired")
    says_so = "may be proposed again" in guidance.message(found)
    assert says_so == guidance.may_propose_again(found)


@given(situations)
def test_customers_hear_no_internals(found: Situation) -> None:
    text = guidance.customer_message(found, {}).lower()
    words = ("landed", "intent", "agent", "ledger", "downstream", "idempotency", "key", "person", "review", "book")
    assert not any(word in text for word in words), text


def test_the_kinds_text_goes_first_but_not_the_one_of_a_status_in_question() -> None:
    texts = {"confirmed": "Your money is back.", "unknown": "We are checking."}
    assert guidance.customer_message(at(Status.CONFIRMED), texts) == "Your money is back."
    assert guidance.customer_message(at(Status.CONFIRMED, disputed=True), texts) == "We are checking."
    assert guidance.customer_message(at(Status.FAILED), texts).startswith("Your request")


def test_when_to_ask_follows_what_happens_next() -> None:
    def seconds(found: Situation) -> float:
        asked = guidance.ask_again_at(found)
        assert asked is not None
        return (asked - NOW).total_seconds()

    def soon(number: int) -> datetime:
        return NOW + timedelta(seconds=number)

    assert seconds(at(Status.RECORDED)) == 2
    assert seconds(at(Status.RECORDED, next_attempt_at=soon(30))) == 31
    assert seconds(at(Status.SUBMITTED, attempt_open=True)) == 5
    assert seconds(at(Status.SUBMITTED, next_check_at=soon(60))) == 61
    assert seconds(at(Status.UNKNOWN, next_check_at=soon(60))) == 61
    assert seconds(at(Status.UNKNOWN, next_check_at=soon(-60))) == 1
    assert seconds(at(Status.UNKNOWN)) == 15
    assert seconds(at(Status.UNKNOWN, review_open=True, next_check_at=soon(2), review_due_at=soon(7_200))) == 300
    assert seconds(at(Status.HELD, review_due_at=soon(120))) == 120
    assert seconds(at(Status.HELD, review_due_at=soon(-120))) == 60
    assert seconds(at(Status.CONFIRMED, disputed=True)) == 300


def test_the_next_steps_of_a_caller() -> None:
    def step(status: Status, **more: object) -> Step:
        return guidance.next_step(at(status, by_caller=True, **more))

    assert step(Status.RECORDED) is Step.SEND
    assert step(Status.RECORDED, send_before=NOW) is Step.WAIT
    assert step(Status.RECORDED, own=False) is Step.WAIT
    assert step(Status.RECORDED, stopped=True) is Step.WAIT
    assert step(Status.SUBMITTED, attempt_open=True, may_send=True) is Step.SEND
    assert step(Status.SUBMITTED, attempt_open=True) is Step.REPORT
    assert step(Status.SUBMITTED) is Step.WAIT
    assert step(Status.UNKNOWN) is Step.WAIT
    assert step(Status.UNKNOWN, review_open=True) is Step.WAIT_FOR_PERSON
    assert step(Status.HELD) is Step.WAIT_FOR_PERSON
