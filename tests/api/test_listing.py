"""GET /intents"""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times
from actions.models import Intent
from actions.statuses import Status
from tests.api.calling import Api, make_api, new_key, problem
from tests.api.test_reading import unknown
from tests.factories import make_intent, make_kind

pytestmark = pytest.mark.django_db


def subjects(api: Api, **query: Any) -> list[str]:
    answer = api.get("/intents", query)
    assert answer.status_code == 200, answer.content
    return [intent["subject"] for intent in answer.json()["data"]]


def make_many(api: Api, number: int) -> None:
    for one in range(number):
        make_intent(api.kind, api.agent, subject=f"o-{one:03}")


def test_newest_come_first_in_the_form_of_the_single_one(api: Api) -> None:
    make_many(api, 3)
    body = api.get("/intents").json()
    assert [intent["subject"] for intent in body["data"]] == ["o-002", "o-001", "o-000"]
    assert body["next_cursor"] is None
    one = api.get(f"/intents/{body['data'][0]['id']}").json()
    assert one | {"ask_again_at": None} == body["data"][0] | {"ask_again_at": None}


def test_a_list_of_a_hundred_costs_as_many_queries_as_one_of_two(api: Api) -> None:
    counts = []
    for number in (2, 100):
        for one in range(number - Intent.objects.count()):
            unknown(make_intent(api.kind, api.agent, subject=f"o-{number}-{one}"))
        fewest = 100
        for _ in range(4):  # the first ones note the token's use and fetch a portion of its rate
            with CaptureQueriesContext(connection) as found:
                assert len(api.get("/intents", {"limit": "100"}).json()["data"]) == number
            fewest = min(fewest, len(found))
        counts.append(fewest)
    # 2 for the token, 1 for now, 3 for intents, attempts and reviews.
    assert counts[0] == counts[1] == 6, counts


def test_pages_follow_each_other_without_gaps_or_repeats_while_new_ones_arrive(
    api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        moment = times.now()
        patch.setattr(times, "now", lambda: moment)  # all in one moment: the id decides
        make_many(api, 7)
    seen: list[str] = []
    cursor: str | None = None
    for _ in range(10):
        answer = api.get("/intents", {"limit": "3"} | ({"cursor": cursor} if cursor else {})).json()
        seen += [intent["subject"] for intent in answer["data"]]
        make_intent(api.kind, api.agent)
        if (cursor := answer["next_cursor"]) is None:
            break
    assert seen == [f"o-{number:03}" for number in reversed(range(7))]


def test_a_last_page_that_is_just_full_has_no_next_one(api: Api) -> None:
    make_many(api, 3)
    assert api.get("/intents", {"limit": "3"}).json()["next_cursor"] is None


@pytest.mark.parametrize("cursor", ["x", "1", "WyJ4Il0:1abc:def", "\x00", "é"])
def test_a_cursor_that_is_not_ours_is_refused(api: Api, cursor: str) -> None:
    problem(api.get("/intents", {"cursor": cursor}), 400, "bad_query")


def test_status_is_repeated_or_listed_with_commas(api: Api) -> None:
    make_intent(api.kind, api.agent, subject="o-1")
    make_intent(api.kind, api.agent, subject="o-2", to=Status.HELD)
    unknown(make_intent(api.kind, api.agent, subject="o-3"))
    assert subjects(api, status="held") == ["o-2"]
    assert subjects(api, status="held,unknown") == ["o-3", "o-2"]
    assert subjects(api, status=["held", "recorded"]) == ["o-2", "o-1"]
    assert subjects(api, status=["held,unknown", "recorded"]) == ["o-3", "o-2", "o-1"]


def test_settled_ones_and_the_others(api: Api) -> None:
    done = api.recorded(subject="o-1")
    api.post(f"/intents/{done['id']}/cancel")
    api.recorded(subject="o-2")
    assert (subjects(api, settled="true"), subjects(api, settled="false")) == (["o-1"], ["o-2"])


def test_by_kind_subject_and_request_key(api: Api) -> None:
    other, key = make_kind(), new_key()
    api.agent.kinds.add(other)
    api.recorded(subject="o-1", key=key)
    api.recorded(subject="o-2", kind=other.name)
    api.recorded(subject="o-2/line-1")
    assert subjects(api, kind=other.name) == ["o-2"]
    assert subjects(api, kind="nonsense") == []
    assert subjects(api, subject=" o-2 ") == ["o-2"]
    assert subjects(api, subject="O-2") == []
    assert subjects(api, request_key=key) == ["o-1"]
    assert subjects(api, kind=other.name, subject="o-1") == []


def test_by_run_exactly(api: Api) -> None:
    runs = ["r-1", "R-1", "r-17", 'r-1","ticket":"x', "100%", "100_", "zoë", "a\\b", 'say "hi"']
    for number, run in enumerate(runs):
        api.recorded(subject=f"o-{number}", context={"run": run, "ticket": '"run":"r-99"'})
    api.recorded(subject="o-none", context={"ticket": "r-1"})
    for number, run in enumerate(runs):
        assert subjects(api, run=run) == [f"o-{number}"], run
    for run in ("r-99", "r-", "", "100"):
        assert subjects(api, run=run) == [], run


def test_updated_after_leaves_out_what_was_seen(api: Api) -> None:
    first, second = api.recorded(subject="o-1"), api.recorded(subject="o-2")
    Intent.objects.filter(pk=first["id"]).update(
        updated_at=Intent.objects.get(pk=second["id"]).updated_at - timedelta(seconds=5)
    )
    seen = {intent["subject"]: intent["updated_at"] for intent in api.get("/intents").json()["data"]}
    assert subjects(api, updated_after=seen["o-1"]) == ["o-2"]
    assert subjects(api, updated_after=seen["o-2"]) == []
    assert subjects(api, updated_after=seen["o-1"].replace("Z", "+00:00")) == ["o-2"]
    answer = api.get(f"/intents?updated_after={seen['o-1'].replace('Z', '+00:00')}")  # + arrives as a space
    assert len(answer.json()["data"]) == 1


@pytest.mark.parametrize(
    "query",
    [
        {"colour": "red"},
        {"Status": "held"},
        {"status": "lost"},
        {"status": ""},
        {"settled": "yes"},
        {"limit": "0"},
        {"limit": "101"},
        {"limit": "ten"},
        {"limit": "1.5"},
        {"limit": "٣"},
        {"limit": "-1"},
        {"limit": ""},
        {"updated_after": "yesterday"},
        {"updated_after": "2026-01-01T00:00:00"},
        {"subject": ""},
        {"subject": "a\x00b"},
        {"run": "a\x00b"},
        {"kind": "a\x00b"},
        {"request_key": "\x00"},
        {"kind": ["a", "b"]},
    ],
)
def test_a_query_that_is_not_understood_is_refused(api: Api, query: dict[str, Any]) -> None:
    problem(api.get("/intents", query), 400, "bad_query")


def test_an_unknown_filter_is_answered_with_the_known_ones(api: Api) -> None:
    body = problem(api.get("/intents", {"colour": "red"}), 400, "bad_query")
    assert {"status", "updated_after", "cursor", "limit"} <= set(body["known"])


def test_the_list_shows_own_ones_and_the_groups(db: None) -> None:
    one = make_api(group="support")
    other, stranger = make_api(one.kind, group="support"), make_api(one.kind)
    one.recorded(subject="o-1")
    other.recorded(subject="o-2")
    stranger.recorded(subject="o-3")
    assert subjects(one) == ["o-2", "o-1"]
    assert subjects(stranger) == ["o-3"]
