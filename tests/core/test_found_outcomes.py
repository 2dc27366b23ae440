"""Found: an answer that is taken to speak for another attempt than its own (rule 3)."""

import pytest

from actions.models import Result
from tests.core.steps import answer, expire, read, submit
from tests.factories import make_intent

pytestmark = pytest.mark.django_db


def test_that_the_first_attempt_was_refused_does_not_contradict_what_the_second_confirmed() -> None:
    intent = make_intent()
    first = submit(intent)
    expire(intent)
    second = submit(intent)
    answer(second, Result.CONFIRMED)
    answer(first, Result.REFUSED)
    assert (read(intent).status, read(intent).disputed) == ("confirmed", False)
