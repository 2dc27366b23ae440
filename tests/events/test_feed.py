"""GET /events: what changed, after a position."""

import time
from typing import Any

import pytest

from actions.models import Event
from actions.statuses import Status
from tests.api.calling import Api, fields_of, make_api, problem
from tests.api.test_waiting import meanwhile, timed
from tests.core.steps import settle, submit
from tests.factories import make_agent, make_intent, make_token

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(db: None) -> Api:
    return make_api()


def events(api: Api, **query: Any) -> dict[str, Any]:
    answer = api.get("/events", query)
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def test_it_says_what_happened_and_where_to_go_on(api: Api) -> None:
    intent = settle(make_intent(api.kind, api.agent), Status.CONFIRMED)
    body = events(api)
    assert [(one["type"], one["sequence"], one["status"]) for one in body["data"]] == [
        ("intent.recorded", 1, "recorded"),
        ("intent.submitted", 2, "submitted"),
        ("intent.settled", 3, "confirmed"),
    ]
    assert set(body["data"][0]) == {"position", "type", "intent", "sequence", "status", "at"}
    assert {one["intent"] for one in body["data"]} == {str(intent.pk)}
    assert (body["next"], body["has_more"]) == (body["data"][-1]["position"], False)
    assert events(api, after=body["next"]) == {"data": [], "next": body["next"], "has_more": False}


def test_pages_follow_each_other_without_gap_or_repetition(api: Api) -> None:
    for _ in range(3):
        submit(make_intent(api.kind, api.agent))
        make_intent(api.kind)  # another's, in between
    seen, after, more = [], 0, True
    while more:
        body = events(api, after=after, limit=2)
        assert len(body["data"]) <= 2
        seen += [one["position"] for one in body["data"]]
        after, more = body["next"], body["has_more"]
    assert seen == sorted(set(seen))
    assert len(seen) == Event.objects.filter(agent=api.agent).count() == 6


def test_of_others_it_says_nothing_and_goes_past_them(api: Api) -> None:
    other = make_intent(api.kind)
    body = events(api)
    assert body["data"] == []
    assert body["next"] == Event.objects.get(intent=other).position


def test_a_group_reads_each_others_events_in_one_order(api: Api) -> None:
    api.agent.group = "g"
    api.agent.save()
    colleague = make_agent(api.kind, group="g")
    stranger = make_agent(api.kind, group="h")
    for agent in (colleague, api.agent, stranger, colleague):
        make_intent(api.kind, agent)
    for token in (make_token(colleague), api.token):
        body = events(Api(colleague, api.kind, token), limit=2)
        assert ([one["position"] for one in body["data"]], body["has_more"]) == ([1, 2], True)
        assert [one["position"] for one in events(Api(colleague, api.kind, token), after=2)["data"]] == [4]


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "", "٣", "9" * 30, "7"])
def test_a_position_that_is_none_or_was_never_given_out_is_refused(api: Api, after: str) -> None:
    make_intent(api.kind, api.agent)
    assert fields_of(api.get("/events", {"after": after})) == ["after"]


@pytest.mark.parametrize("query", ["limit=0", "limit=101", "limit=x", "before=3", "after=0&after=1"])
def test_a_query_that_is_not_understood_is_refused(api: Api, query: str) -> None:
    problem(api.get(f"/events?{query}"), 400, "bad_query")


def test_it_takes_the_scope_read(api: Api) -> None:
    token = make_token(api.agent, may_read=False)
    problem(Api(api.agent, api.kind, token).get("/events"), 403, "scope_missing")


def test_a_held_intent_tells_no_reason(api: Api) -> None:
    held = api.recorded(amount="10000.01")
    found = [one for one in events(api)["data"] if one["intent"] == held["id"]]
    assert [one["type"] for one in found] == ["intent.held", "review.opened"]
    assert "approval" not in str(found)
    assert "reason" not in str(found)


@pytest.mark.django_db(transaction=True)
def test_it_waits_until_something_happens(api: Api) -> None:
    before = events(api)["next"]
    with meanwhile(lambda: make_intent(api.kind, api.agent), after_s=0.3):
        answer, took = timed(lambda: api.get("/events", {"after": before}, Prefer="wait=10"))
    assert [one["type"] for one in answer.json()["data"]] == ["intent.recorded"]
    assert answer["Preference-Applied"] == "wait=10"
    assert 0.2 < took < 5
    answer, took = timed(lambda: api.get("/events", {"after": before}, Prefer="wait=10"))
    assert (len(answer.json()["data"]), took < 2) == (1, True), "there is something: at once"


@pytest.mark.django_db(transaction=True)
def test_another_agents_events_end_no_wait_and_its_end_says_where_to_go_on(api: Api) -> None:
    make_intent(api.kind)
    began = time.monotonic()
    answer = api.get("/events", {"after": 0}, Prefer="wait=1")
    assert answer.json() == {"data": [], "next": 1, "has_more": False}
    assert time.monotonic() - began > 0.9


def test_without_a_place_to_wait_it_is_answered_at_once(api: Api, settings: Any) -> None:
    settings.LANDED_WAITERS = 0
    answer, took = timed(lambda: api.get("/events", Prefer="wait=10"))
    assert "Preference-Applied" not in answer
    assert (answer["Retry-After"], took < 2) == ("2", True)
