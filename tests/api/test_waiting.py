"""Prefer: wait=N holds the answer while there is nothing to do but wait."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests
from django.db import connection

from actions import callers, times, transitions, waiting
from actions.api.preferring import wait_s
from actions.models import Intent, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from tests.api.calling import Api, make_caller, new_key, problem
from tests.api.test_reading import submit
from tests.factories import make_agent, make_intent, make_kind, make_token

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(db: None) -> Api:
    return make_caller(make_kind(reports_trusted=True))


@contextmanager
def meanwhile(act: Callable[[], object], *, after_s: float) -> Iterator[None]:
    """Runs `act` in another thread, with a connection of its own, so many seconds from now."""

    def run() -> None:
        time.sleep(after_s)
        try:
            act()
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    yield
    thread.join()


def confirm(intent: Intent) -> None:
    transitions.apply(
        intent.pk,
        expected=Status.SUBMITTED,
        to=Status.CONFIRMED,
        actor=Actor.WORKER,
        actor_id="worker:t",
        reason=Reason.CONFIRMED_BY_ANSWER,
        settled_by=SettledBy.ANSWER,
    )


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    began = time.monotonic()
    return call(), time.monotonic() - began


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("wait=5", 5),
        ("Wait = 5", 5),
        ('wait="7"', 7),
        ("wait=0", 0),
        ("wait=100", 30),
        ("respond-async, wait=4; x=y", 4),
        ('note="a, wait=3", wait=4', 4),
        ("wait=5, wait=9", 5),
        ("foo; wait=3", None),
        *(
            (text, None)
            for text in [None, "", "wait", "wait=", "wait=-1", "wait=1.5", "wait=x", "wait=٣", "=3", "wait=5 6"]
        ),
        ("wait=x, wait=5", None),
        ("wait=9999999999999", None),
        ('wait="5', None),
    ],
)
def test_the_header_is_read_as_rfc_7240_says_and_ignored_where_it_is_malformed(
    header: str | None, seconds: int | None
) -> None:
    assert wait_s(header) == seconds


def test_reading_waits_until_it_settles(api: Api) -> None:
    intent = make_intent(api.kind, api.agent)
    submit(intent)
    with meanwhile(lambda: confirm(intent), after_s=0.7):
        answer, took = timed(lambda: api.get(f"/intents/{intent.pk}", Prefer="wait=10"))
    assert (answer.status_code, answer.json()["status"]) == (200, "confirmed")
    assert answer["Preference-Applied"] == "wait=10"
    assert 0.6 < took < 5


def test_when_the_time_is_over_it_is_answered_as_it_is(api: Api) -> None:
    intent = make_intent(api.kind, api.agent)
    submit(intent)
    answer, took = timed(lambda: api.get(f"/intents/{intent.pk}", Prefer="wait=1"))
    assert (answer.json()["status"], answer["Preference-Applied"]) == ("submitted", "wait=1")
    assert 0.9 < took < 3


def test_a_change_that_settles_nothing_does_not_end_the_wait(api: Api) -> None:
    intent = make_intent(api.kind, api.agent)
    with meanwhile(lambda: submit(intent), after_s=0.3):
        answer, took = timed(lambda: api.get(f"/intents/{intent.pk}", Prefer="wait=1"))
    assert answer.json()["status"] == "submitted"
    assert took > 0.9


def test_proposing_waits_and_says_what_it_says_without(api: Api) -> None:
    key = new_key()

    def settle() -> None:
        # On a busy machine it may not be recorded yet.
        give_up = time.monotonic() + 8
        while not Intent.objects.exists() and time.monotonic() < give_up:
            time.sleep(0.05)
        intent = Intent.objects.get()
        submit(intent)
        confirm(intent)

    with meanwhile(settle, after_s=0.6):
        answer, took = timed(lambda: api.propose(key=key, headers={"Prefer": "wait=10"}))
    body = answer.json()
    assert (answer.status_code, body["status"], answer["Preference-Applied"]) == (201, "confirmed", "wait=10")
    assert answer["Location"] == f"/api/v1/intents/{body['id']}"
    assert 0.5 < took < 10
    again, took = timed(lambda: api.propose(key=key, headers={"Prefer": "wait=10"}))
    assert (again.status_code, again["Idempotent-Replayed"], again.json()["status"]) == (200, "true", "confirmed")
    assert took < 2, "it is settled: there is nothing to wait for"


def test_who_has_something_else_to_do_is_told_so_at_once(api: Api) -> None:
    held = api.propose(subject="o-1", amount="20000.00", headers={"Prefer": "wait=20"})
    mine = api.propose(subject="o-2", executor="caller", claim_token="t", headers={"Prefer": "wait=20"})
    unclaimed, took = timed(lambda: api.propose(subject="o-3", executor="caller", headers={"Prefer": "wait=20"}))
    assert [one.json()["next_step"] for one in (held, mine, unclaimed)] == ["wait_for_person", "send", "send"]
    assert took < 3
    assert mine.json()["attempt"]["may_send"], "and the token still counts"


def test_what_is_not_there_is_not_waited_for(api: Api) -> None:
    stranger = make_caller(api.kind)
    intent = make_intent(api.kind, api.agent)
    answer, took = timed(lambda: stranger.get(f"/intents/{intent.pk}", Prefer="wait=20"))
    problem(answer, 404, "not_found")
    assert took < 3


def test_without_a_preference_nothing_is_applied(api: Api) -> None:
    intent = make_intent(api.kind, api.agent)
    for prefer in (None, "wait=soon", "return=minimal"):
        answer, took = timed(lambda prefer=prefer: api.get(f"/intents/{intent.pk}", Prefer=prefer))
        assert "Preference-Applied" not in answer
        assert "Retry-After" not in answer
        assert took < 1


def test_when_too_many_wait_the_answer_comes_at_once(api: Api, live: str, settings: Any) -> None:
    settings.LANDED_WAITERS = 2
    intent = make_intent(api.kind, api.agent)
    submit(intent)

    def read(prefer: str) -> requests.Response:
        return requests.get(f"{live}/api/v1/intents/{intent.pk}", headers=api.headers(Prefer=prefer), timeout=30)

    waiting_ones = [threading.Thread(target=read, args=["wait=3"]) for _ in range(2)]
    for thread in waiting_ones:
        thread.start()
    time.sleep(1)
    answer, took = timed(lambda: read("wait=20"))
    assert (answer.status_code, answer.json()["status"]) == (200, "submitted")
    assert "Preference-Applied" not in answer.headers
    assert int(answer.headers["Retry-After"]) >= 1
    assert took < 1.5
    for thread in waiting_ones:
        thread.join()
    assert read("wait=1").headers["Preference-Applied"] == "wait=1", "the places are free again"


def test_no_connection_is_held_while_it_waits(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = make_intent(api.kind, api.agent)
    submit(intent)
    held = []

    def sleep(seconds: float) -> None:
        held.append((connection.connection is not None, connection.in_atomic_block))
        monkeypatch_free(seconds)

    monkeypatch_free = time.sleep
    monkeypatch.setattr(waiting.time, "sleep", sleep)
    api.get(f"/intents/{intent.pk}", Prefer="wait=1")
    assert len(held) >= 3
    assert set(held) == {(False, False)}


def test_it_looks_about_four_times_a_second_at_one_row(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = []
    look = waiting.seen_of
    monkeypatch.setattr(waiting, "seen_of", lambda pk: (looks.append(pk), look(pk))[1])
    intent = make_intent(api.kind, api.agent)
    submit(intent)
    api.get(f"/intents/{intent.pk}", Prefer="wait=2")
    assert 5 <= len(looks) <= 13


def test_a_place_is_given_back_when_something_breaks(
    api: Api, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LANDED_WAITERS = 1
    intent = make_intent(api.kind, api.agent)
    submit(intent)
    with monkeypatch.context() as patch:
        patch.setattr(waiting, "until_moved", lambda *_, **__: 1 / 0)
        problem(api.get(f"/intents/{intent.pk}", Prefer="wait=5"), 500, "internal")
    assert api.get(f"/intents/{intent.pk}", Prefer="wait=0")["Preference-Applied"] == "wait=0"


def test_a_colleague_waits_for_whoever_carries_it_out(db: None) -> None:
    owner = make_caller(make_kind(reports_trusted=True), group="g")
    intent = make_intent(owner.kind, owner.agent, executor="caller")
    callers.claim(intent.pk, claim_token="t", actor_id="agent:1")
    colleague = make_agent(owner.kind, group="g")
    other = Api(colleague, owner.kind, make_token(colleague))
    done = callers.reported(callers.Result.CONFIRMED)
    with meanwhile(lambda: callers.report(intent.pk, outcome=done, content={}, actor_id="agent:1"), after_s=0.5):
        answer, took = timed(lambda: other.get(f"/intents/{intent.pk}", Prefer="wait=10"))
    assert (answer.json()["status"], 0.4 < took < 5) == ("confirmed", True)
    assert times.now() is not None
