"""Found: callers that say the opposite of what they said before."""

import pytest

from actions import callers
from actions.models import Attempt, Intent, Result
from actions.statuses import Status
from tests.core.steps import read
from tests.factories import make_intent, make_kind

pytestmark = pytest.mark.django_db


def claimed() -> tuple[Intent, Attempt]:
    intent = make_intent(make_kind(), executor="caller")
    return intent, callers.claim(intent.pk, claim_token="t-1", actor_id="agent:1")


def report(intent: Intent, result: Result) -> Intent:
    return callers.report(intent.pk, outcome=callers.reported(result), content={"said": result}, actor_id="agent:1")


def test_a_caller_that_first_said_refused_and_then_confirmed_is_a_contradiction() -> None:
    """Settled intents keep listening: the second report is kept as evidence and contradicts the status."""
    intent, _ = claimed()
    assert report(intent, Result.REFUSED).status == Status.FAILED
    report(intent, Result.CONFIRMED)
    assert read(intent).disputed


def test_a_caller_that_first_said_not_sent_and_then_confirmed_can_t_have_it_sent_again() -> None:
    """It is recorded again after the first report, and whoever claims next would do it twice."""
    intent, _ = claimed()
    assert report(intent, Result.NOT_SENT).status == Status.RECORDED
    report(intent, Result.CONFIRMED)
    assert read(intent).status != Status.RECORDED
