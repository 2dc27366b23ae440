"""Many calls at the same moment, through a real server with threads."""

import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from actions import subjects
from actions.models import Intent, Transition
from tests.api.calling import Api, make_api, new_key
from tests.factories import make_kind

pytestmark = pytest.mark.django_db(transaction=True)

MANY = 50


def at_once(call: Callable[[int], requests.Response]) -> list[requests.Response]:
    """`call(0)` … `call(MANY - 1)`, let go together."""
    start = threading.Barrier(MANY)

    def one(number: int) -> requests.Response:
        start.wait(30)
        return call(number)

    with ThreadPoolExecutor(MANY) as pool:
        return list(pool.map(one, range(MANY)))


def proposing(live: str, api: Api, key: Callable[[int], str], **fields: Any) -> Callable[[int], requests.Response]:
    headers = api.headers()
    body = api.body(**fields)
    return lambda number: requests.post(
        f"{live}/api/v1/intents", json=body, headers=headers | {"Idempotency-Key": key(number)}, timeout=120
    )


def codes(answers: list[requests.Response]) -> Counter[int]:
    found = Counter(answer.status_code for answer in answers)
    assert max(found) < 500, [answer.text for answer in answers if answer.status_code >= 500]
    return found


def test_of_many_proposals_for_one_subject_one_is_recorded_and_the_others_are_led_to_it(live: str, api: Api) -> None:
    answers = at_once(proposing(live, api, lambda _: new_key()))
    assert codes(answers) == {201: 1, 409: MANY - 1}
    (intent,) = Intent.objects.all()
    refusals = [answer.json() for answer in answers if answer.status_code == 409]
    assert {body["code"] for body in refusals} == {"unsettled_duplicate"}
    assert {body["intent_id"] for body in refusals} == {str(intent.pk)}


@pytest.mark.parametrize("fields", [{}, {"executor": "caller", "claim_token": "mine"}])
@pytest.mark.parametrize("duplicate_policy", ["refuse", "hold"])
def test_of_many_calls_with_one_key_one_records_and_all_get_the_same_intent(
    live: str, db: None, fields: dict[str, str], duplicate_policy: str
) -> None:
    api, key = make_api(make_kind(duplicate_policy=duplicate_policy)), new_key()
    answers = at_once(proposing(live, api, lambda _: key, **fields))
    assert codes(answers) == {201: 1, 200: MANY - 1}
    (intent,) = Intent.objects.all()
    assert Transition.objects.count() == 1
    assert {answer.json()["id"] for answer in answers} == {str(intent.pk)}


def test_a_subject_and_its_parts_let_one_through_at_a_time(
    live: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.recorded(subject="o-0")  # the first one of a kind stores its policy, and the others would queue for that
    looking = subjects.blocking

    def slowly(*args: Any, **options: Any) -> list[Intent]:
        found = looking(*args, **options)
        time.sleep(0.05)  # so that two who may look at the same time both find nothing
        return found

    monkeypatch.setattr(subjects, "blocking", slowly)
    parts = [proposing(live, api, lambda _: new_key(), subject=name) for name in ("o-1", "o-1/line-2")]
    answers = at_once(lambda number: parts[number % 2](number))
    assert codes(answers) == {201: 1, 409: MANY - 1}


def test_many_subjects_are_recorded_side_by_side(live: str, api: Api) -> None:
    calls = [proposing(live, api, lambda _: new_key(), subject=f"o-{number}") for number in range(MANY)]
    answers = at_once(lambda number: calls[number](number))
    assert codes(answers) == {201: MANY}
    assert Intent.objects.count() == MANY
