"""Found: DESIGN §3, last paragraph: a disputed subject stops what was not sent yet."""

import pytest

from actions import callers, times
from actions.errors import LandedError
from actions.models import Intent, Result
from actions.statuses import Status
from reconciliation.reviews import opening
from tests.core.steps import answer, expire, read, submit
from tests.core.test_outcomes import _fail_by_absence
from tests.factories import make_intent, make_kind

pytestmark = pytest.mark.django_db


def disputed_beside(**columns: str) -> tuple[Intent, Intent]:
    """An intent that failed by absence; a new one on its order; then the late yes to the first."""
    kind = make_kind()
    first = make_intent(kind, subject="order-1")
    attempt = submit(first)
    expire(first)
    _fail_by_absence(first)
    second = make_intent(kind, subject="order-1", **columns)  # type: ignore[arg-type]
    answer(attempt, Result.CONFIRMED)
    assert read(first).disputed
    return first, second


def test_what_is_recorded_on_a_disputed_subject_goes_to_held() -> None:
    _, second = disputed_beside()
    assert read(second).status == "held"


def test_also_when_it_is_another_line_of_the_family() -> None:
    kind = make_kind()
    first = make_intent(kind, subject="order-1")
    submit(first)
    expire(first)
    _fail_by_absence(first)
    line = make_intent(kind, subject="order-1/line-1")
    opening.dispute(read(first), now=times.now())
    assert read(line).status == "held"


def test_a_caller_can_t_claim_on_a_disputed_subject() -> None:
    """Dispatch looks for it when it claims; `callers.claim` does not."""
    _, second = disputed_beside(executor="caller")
    with pytest.raises(LandedError):
        callers.claim(second.pk, claim_token="t-1", actor_id="agent:1")
    assert read(second).status in (Status.RECORDED, Status.HELD)
