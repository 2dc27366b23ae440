"""The database goes away under a live server: 503, nothing half-done, and the same key afterwards records once."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import requests
from django.db import OperationalError, connection, connections

from actions import hooks
from actions.models import Attempt, Intent, Transition
from tests.api.calling import Api, make_caller, new_key
from tests.factories import make_intent, make_kind

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def api(db: None) -> Api:
    return make_caller(make_kind(reports_trusted=True))


@contextmanager
def database_away() -> Iterator[None]:
    """New connections fail for real: the server's threads, which open one per request here, reach nothing."""
    shared = connections.settings["default"]
    name = "NAME" if connection.vendor == "sqlite" else "HOST"
    # This thread's own connection keeps what it has; the dict is the one that new connections are made from.
    kept, shared[name] = shared[name], "/nowhere/at/all"
    try:
        yield
    finally:
        shared[name] = kept


def post(live: str, api: Api, path: str, body: Any, **headers: str) -> requests.Response:
    return requests.post(f"{live}/api/v1{path}", json=body, headers=api.headers(**headers), timeout=60)


def unavailable(answer: requests.Response) -> None:
    assert (answer.status_code, answer.headers["Content-Type"]) == (503, "application/problem+json"), answer.text
    body = answer.json()
    assert (body["code"], body["retryable"]) == ("unavailable", True)
    assert int(answer.headers["Retry-After"]) >= 1
    assert "nowhere" not in answer.text


def test_while_it_is_away_every_route_says_so_and_afterwards_the_same_key_records_once(live: str, api: Api) -> None:
    intent, key = make_intent(api.kind, api.agent, executor="caller"), new_key()
    body = api.body(subject="order-77")
    with database_away():
        unavailable(post(live, api, "/intents", body, Idempotency_Key=key))
        unavailable(post(live, api, f"/intents/{intent.pk}/attempts", {"claim_token": "t"}))
        unavailable(requests.get(f"{live}/api/v1/intents/{intent.pk}", headers=api.headers(), timeout=60))
        unavailable(requests.get(f"{live}/api/v1/me", headers=api.headers(Prefer="wait=5"), timeout=60))
    assert Intent.objects.exclude(pk=intent.pk).count() == 0
    assert not Attempt.objects.exists()
    answers = [post(live, api, "/intents", body, Idempotency_Key=key) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [201, 200]
    assert Intent.objects.filter(subject="order-77").count() == 1
    assert post(live, api, f"/intents/{intent.pk}/attempts", {"claim_token": "t"}).status_code == 201


def cut_off() -> None:
    """The server ends this very connection, in the middle of its transaction."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    else:
        raise OperationalError("disk I/O error")  # SQLite has no server that could go away; a disk can


@pytest.mark.parametrize("what", ["record", "claim", "report"])
def test_cut_off_in_the_middle_nothing_is_half_done_and_asking_again_does_it_once(
    live: str, api: Api, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    intent, key = make_intent(api.kind, api.agent, executor="caller"), new_key()
    calls: dict[str, Callable[[], requests.Response]] = {
        "record": lambda: post(live, api, "/intents", api.body(subject="order-78"), Idempotency_Key=key),
        "claim": lambda: post(live, api, f"/intents/{intent.pk}/attempts", {"claim_token": "t"}),
        "report": lambda: post(
            live, api, f"/intents/{intent.pk}/report", {"attempt": 1, "claim_token": "t", "outcome": "confirmed"}
        ),
    }
    if what == "report":
        calls["claim"]()
    before = (Intent.objects.count(), Attempt.objects.count(), Transition.objects.count(), intent.evidence.count())
    with monkeypatch.context() as patch:
        # The intent and its transition are written and not committed.
        patch.setattr(hooks, "tell_transition", lambda *_: cut_off())
        unavailable(calls[what]())
    after = (Intent.objects.count(), Attempt.objects.count(), Transition.objects.count(), intent.evidence.count())
    assert after == before
    assert [calls[what]().status_code for _ in range(2)] == ([200, 200] if what == "report" else [201, 200])
    assert Transition.objects.count() == before[2] + 1


def test_when_the_answer_is_lost_after_the_commit_the_same_key_gives_what_was_recorded(
    live: str, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    from actions.api import showing

    key, body = new_key(), api.body(executor="caller", claim_token="t-1")
    with monkeypatch.context() as patch:
        patch.setattr(showing, "intent_json", lambda *_, **__: cut_off())
        unavailable(post(live, api, "/intents", body, Idempotency_Key=key))
    assert Intent.objects.get().status == "submitted"
    again = post(live, api, "/intents", body, Idempotency_Key=key)
    assert (again.status_code, again.json()["attempt"]["may_send"]) == (200, True)
    assert Attempt.objects.count() == 1
