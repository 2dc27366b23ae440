"""Each limit at its boundary: exactly the limit passes, one minor unit more doesn't."""

from datetime import timedelta

import pytest

from actions.limits import DAY
from actions.models import Result
from actions.statuses import Status
from tests.core.steps import answer, settle, submit
from tests.limits.limiting import amounts, ask, made, make_limited, refused

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("currency", "minor", "fits", "above"),
    [("EUR", 10_000, "100.00", "100.01"), ("JPY", 10_000, "10000", "10001"), ("KWD", 10_000, "10.000", "10.001")],
)
def test_one_action_may_be_the_limit_and_no_minor_unit_more(currency: str, minor: int, fits: str, above: str) -> None:
    agent, kind = make_limited(limits=amounts(currency, per_action=minor))
    error = refused(agent, kind, above, currency=currency)
    assert error.limit == {
        "name": "per_action",
        "kind": None,
        "amount": fits,
        "currency": currency,
        "count": None,
        "minutes": None,
    }
    assert (error.remaining, error.resets_at) == (fits, None)
    assert ask(agent, kind, fits, currency=currency).status == Status.RECORDED


@pytest.mark.parametrize(
    ("currency", "first", "rest", "above"),
    [("EUR", "60.00", "40.00", "40.01"), ("JPY", "6000", "4000", "4001"), ("KWD", "6.000", "4.000", "4.001")],
)
def test_a_days_sum_may_be_the_limit_and_no_minor_unit_more(currency: str, first: str, rest: str, above: str) -> None:
    agent, kind = make_limited(limits=amounts(currency, per_day=10_000))
    intent = ask(agent, kind, first, currency=currency)
    error = refused(agent, kind, above, currency=currency)
    assert error.limit is not None
    assert (error.limit["name"], error.remaining) == ("per_day", rest)
    assert error.resets_at == intent.created_at + DAY
    ask(agent, kind, rest, currency=currency)


def test_it_resets_when_enough_of_the_oldest_has_left_the_day() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000))
    first, second, third = (ask(agent, kind, amount) for amount in ("30.00", "30.00", "40.00"))
    made(first, ago=timedelta(hours=3))
    at = made(second, ago=timedelta(hours=2))
    made(third, ago=timedelta(hours=1))
    assert refused(agent, kind, "60.00").resets_at == at + DAY
    assert refused(agent, kind, "100.01").resets_at is None  # by itself more than a day's


def test_what_was_proposed_a_day_ago_counts_no_more() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000))
    first = ask(agent, kind, "100.00")
    made(first, ago=DAY - timedelta(minutes=1))
    refused(agent, kind, "0.01")
    made(first, ago=DAY)
    ask(agent, kind, "100.00")


def test_unknown_counts_and_failed_and_cancelled_free_it() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000))
    intent = ask(agent, kind, "100.00")
    attempt = submit(intent)
    refused(agent, kind, "0.01")
    answer(attempt, Result.NO_ANSWER)
    refused(agent, kind, "0.01")
    other, kind = make_limited(kind, limits=amounts(per_day=10_000))
    settle(ask(other, kind, "100.00"), Status.FAILED)
    ask(other, kind, "100.00")
