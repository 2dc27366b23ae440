"""How much an agent may ask for in a minute, over all web processes."""

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
import requests
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import rates, times
from actions.errors import RateLimited
from actions.models import Agent, Intent, Usage
from actions.rates import Bucket
from tests.api.calling import Api, make_api, new_key, problem
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _nothing_in_memory() -> Iterator[None]:
    rates.forget()
    yield
    rates.forget()


@pytest.fixture
def at(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Sets the database's clock, and forgets what was taken in portions."""
    began = datetime.fromisoformat("2026-11-29T12:00:00+00:00")

    def move(seconds: float) -> None:
        monkeypatch.setattr(times, "now", lambda: began + timedelta(seconds=seconds))
        rates.forget()

    move(0)
    return move


def taken(agent: Agent, number: int, bucket: Bucket = Bucket.PROPOSE) -> int:
    """How many of so many requests are let through."""
    count = 0
    for _ in range(number):
        try:
            rates.take(agent, bucket)
            count += 1
        except RateLimited:
            pass
    return count


def test_beyond_its_minute_an_agent_is_told_when_to_come_again(db: None) -> None:
    api = make_api(rate_per_minute=3)
    assert [api.propose(subject=f"o-{n}").status_code for n in range(3)] == [201] * 3
    answer = api.propose(subject="o-9")
    body = problem(answer, 429, "rate_limited")
    assert 1 <= int(answer["Retry-After"]) <= 120
    assert body["retryable"] is True
    assert Intent.objects.count() == 3


def test_a_replay_counts_and_so_does_a_refused_proposal(db: None) -> None:
    api, key = make_api(rate_per_minute=3), new_key()
    statuses = [api.propose(key=key).status_code, api.propose(key=key).status_code, api.propose().status_code]
    assert statuses == [201, 200, 409]
    problem(api.propose(key=key), 429, "rate_limited")


def test_following_up_is_counted_apart_and_ten_times_as_large(db: None) -> None:
    api = make_api(rate_per_minute=2)
    first = api.recorded()
    api.recorded(subject="o-2")
    problem(api.propose(subject="o-3"), 429, "rate_limited")
    assert [api.get(f"/intents/{first['id']}").status_code for _ in range(20)] == [200] * 20
    problem(api.get(f"/intents/{first['id']}"), 429, "rate_limited")


def test_all_tokens_of_an_agent_share_its_rate_and_agents_do_not(db: None) -> None:
    from tests.factories import make_token

    api = make_api(rate_per_minute=2)
    other = Api(api.agent, api.kind, make_token(api.agent))
    api.recorded(subject="o-1")
    other.recorded(subject="o-2")
    for one in (api, other):
        problem(one.propose(subject="o-3"), 429, "rate_limited")
    assert make_api(api.kind, rate_per_minute=2).propose(subject="o-3").status_code == 201


def test_who_is_not_known_uses_up_nobodys_minute(db: None) -> None:
    api = make_api(rate_per_minute=1)
    for _ in range(3):
        api.propose(headers={"Authorization": "Bearer nonsense"})
    assert api.propose().status_code == 201


def test_the_minute_slides(at: Callable[[float], None], db: None) -> None:
    agent = make_agent(rate_per_minute=60)
    assert taken(agent, 61) == 60
    at(59)
    assert taken(agent, 1) == 0, "the minute is not over"
    at(61)
    assert taken(agent, 60) == 1, "a new minute has begun, and the last sixty seconds still count"
    at(90)
    assert taken(agent, 60) == 29
    at(1_000)
    assert taken(agent, 61) == 60


def test_when_to_come_again_is_true(at: Callable[[float], None], db: None) -> None:
    agent = make_agent(rate_per_minute=30)
    taken(agent, 30)
    at(20)
    with pytest.raises(RateLimited) as told:
        rates.take(agent, Bucket.PROPOSE)
    after = told.value.details["retry_after"]
    at(20 + after - 2)
    assert taken(agent, 1) == 0
    at(20 + after)
    assert taken(agent, 1) == 1


@pytest.mark.parametrize("rate", [1, 2, 7, 120, 500])
def test_never_more_than_the_limit(at: Callable[[float], None], rate: int, db: None) -> None:
    agent = make_agent(rate_per_minute=rate)
    assert taken(agent, rate + 20) == rate


def test_under_load_most_requests_cost_no_query(db: None) -> None:
    agent = make_agent(rate_per_minute=500)
    with CaptureQueriesContext(connection) as found:
        assert taken(agent, 200) == 200
    # 1, 2, 4, 8, 16, 25, 25 … : a dozen portions of one time, one row and one write each.
    assert len([q for q in found if "SAVEPOINT" not in q["sql"]]) <= 45


def test_who_hammers_is_refused_from_memory(db: None) -> None:
    agent = make_agent(rate_per_minute=1)
    taken(agent, 2)
    with CaptureQueriesContext(connection) as found:
        assert taken(agent, 500) == 0
    assert len(found) <= 10


def test_a_slow_agent_loses_nothing_in_portions(at: Callable[[float], None], db: None) -> None:
    """Each process would otherwise keep what it took for others that come to it."""
    agent = make_agent(rate_per_minute=500)
    for number in range(50):
        at(number)  # forgets the portion, as another process would not have it
        assert taken(agent, 1) == 1
    assert Usage.objects.get(agent=agent).count == 50


def test_what_is_left_is_shown(db: None) -> None:
    api = make_api(rate_per_minute=5)
    for n in range(2):
        api.recorded(subject=f"o-{n}")
    limits = api.get("/me").json()["limits"]
    assert limits == {"rate_per_minute": 5, "left": {"propose": 3, "other": 49}, "set": []}


def test_redis_is_not_asked(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise AssertionError("Redis was asked")

    monkeypatch.setattr("redis.connection.AbstractConnection.connect", away)
    assert taken(make_agent(rate_per_minute=3), 5) == 3


@pytest.mark.django_db(transaction=True)
def test_many_at_once_get_no_more_and_no_less_than_there_is(live: str, db: None) -> None:
    api = make_api(rate_per_minute=20)

    def one(number: int) -> int:
        return requests.post(
            f"{live}/api/v1/intents",
            json=api.body(subject=f"o-{number}"),
            headers=api.headers(Idempotency_Key=new_key()),
            timeout=60,
        ).status_code

    with ThreadPoolExecutor(16) as pool:
        found = Counter(pool.map(one, range(40)))
    assert found == {201: 20, 429: 20}


_ANOTHER_PROCESS = """
import django
django.setup()
from actions import rates
from actions.errors import RateLimited
from actions.models import Agent
agent, count = Agent.objects.get(pk={pk}), 0
for _ in range(60):
    try:
        rates.take(agent, rates.Bucket.PROPOSE)
        count += 1
    except RateLimited:
        pass
print(count)
"""


@pytest.mark.django_db(transaction=True)
def test_processes_share_the_minute(db: None, database_url: str) -> None:
    import os

    agent = make_agent(rate_per_minute=40)
    environment = os.environ | {"DATABASE_URL": database_url, "DJANGO_SETTINGS_MODULE": "config.settings"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _ANOTHER_PROCESS.format(pk=agent.pk)],
            env=environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    counts = [int(process.communicate(timeout=60)[0]) for process in processes]
    assert sum(counts) == 40, counts
