"""What goes out and what is read, without a server."""

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from landed_client import Failed, Held, Intent, LandedError, OutcomeUnknown, errors
from landed_client.outcomes import confirmed, error_of
from landed_client.testing import FakeLanded

REFUND = {"kind": "refund", "subject": "order-1", "amount": "50.00", "currency": "EUR"}


@pytest.mark.parametrize(
    ("given", "sent"), [("50.00", "50.00"), (Decimal("50.00"), "50.00"), (50, "50.00"), (Decimal("5E+1"), "50.00")]
)
def test_amounts_keep_their_digits(given: Any, sent: str) -> None:
    fake = FakeLanded()
    fake.client().actions.propose(**REFUND | {"amount": given})
    assert fake.intents()[0]["amount"] == sent


@pytest.mark.parametrize("given", [50.0, True, Decimal("NaN"), Decimal("Infinity")])
def test_amounts_that_mean_nothing_are_refused_before_anything_is_sent(given: Any) -> None:
    fake = FakeLanded()
    with pytest.raises((TypeError, ValueError)):
        fake.client().actions.propose(**REFUND | {"amount": given})
    assert fake.requests == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"ammount": "5"},
        {"kind": None},
        {"send_before": datetime(2026, 1, 1)},
        {"request_key": "ä"},
        {"params": {"a": float("nan")}},
    ],
)
def test_fields_that_mean_nothing_are_refused_before_anything_is_sent(wrong: Any) -> None:
    fake = FakeLanded()
    with pytest.raises((TypeError, ValueError)):
        fake.client().actions.propose(**REFUND | wrong)
    assert fake.requests == []


def read(**fields: Any) -> Intent:
    return Intent.read({"id": "i-1", "status": "unknown", "settled": False, "next_step": "wait", **REFUND, **fields})


def test_unknown_values_are_kept_and_read_as_wait() -> None:
    newer = read(status="reversed", settled=True, next_step="dance", settled_at="soon", mood={"a": 1})
    assert (newer.status, newer.next_step, newer.extra) == ("reversed", "dance", {"mood": {"a": 1}})
    assert (newer.outcome, newer.step, newer.done, newer.settled_at) == ("pending", "wait", False, None)
    with pytest.raises(OutcomeUnknown):
        confirmed(newer)


def test_what_is_disputed_is_not_believed() -> None:
    disputed = read(status="confirmed", settled=True, disputed=True)
    assert disputed.outcome == "pending"
    assert type(error_of(disputed)) is OutcomeUnknown


@pytest.mark.parametrize("status", ["held", "recorded", "submitted", "unknown", "sideways"])
def test_nothing_that_is_open_is_raised_as_done_or_not_done(status: str) -> None:
    found = error_of(read(status=status))
    assert isinstance(found, OutcomeUnknown)
    assert isinstance(found, Held) is (status == "held")
    assert not any(
        word in f"{type(found).__name__} {found}".lower() for word in ("fail", "try again", "retry", "timed")
    )


def test_no_exception_is_a_time_out() -> None:
    tree = [one for one in vars(errors).values() if isinstance(one, type) and issubclass(one, LandedError)]
    assert len(tree) > 15
    assert not any(issubclass(one, TimeoutError | OSError) for one in tree)
    assert not issubclass(Failed, OutcomeUnknown)


def test_waiting_asks_no_sooner_than_it_helps_and_returns_what_is_pending() -> None:
    fake = FakeLanded()
    client = fake.client()
    held = client.actions.propose(**REFUND | {"amount": "20000.00"})
    arrived = len(fake.requests)
    still = client.actions.wait(held.id, timeout=15)
    assert (still.status, fake.now) == ("held", pytest.approx(15))
    assert len(fake.requests) - arrived <= 2


def test_waiting_returns_what_was_read_last_when_landed_goes_away() -> None:
    fake = FakeLanded()
    fake.script("order-1", "unknown")
    client = fake.client(timeout=3)
    first = client.actions.propose(**REFUND, wait=1)
    client.actions.get(first.id)
    fake.requests.clear()
    original = fake.handle_request
    answers = iter([True])

    def once(request: Any) -> Any:
        if next(answers, False):
            return original(request)
        fake.lose_answers()
        return original(request)

    fake.handle_request = once  # type: ignore[method-assign]
    assert client.actions.wait(first.id, timeout=40).status == "unknown"


def test_events_come_in_order_and_go_on_from_the_position() -> None:
    fake = FakeLanded()
    client = fake.client()
    fake.script("order-1", "unknown", "confirmed")
    intent = client.actions.propose(**REFUND, wait=10)
    first = client.actions.events(limit=1)
    rest = client.actions.events(after=first.next)
    types = [one.type for one in (*first.data, *rest.data)]
    assert types[-1] == "intent.settled"
    assert {one.intent_id for one in rest.data} == {intent.id}
    assert client.actions.events(after=rest.next).data == ()


def test_times_are_aware() -> None:
    found = read(ask_again_at="2026-11-29T12:00:30Z", created_at="2026-11-29T12:00:30")
    assert found.ask_again_at is not None
    assert found.ask_again_at.utcoffset() == timedelta(0)
    assert found.created_at is None
