"""What an agent is told: the refusal, `GET /me`, the document; and what its group may read."""

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from jsonschema import Draft202012Validator

from actions.api.schemas import LimitOut
from actions.limit_rules import LimitName
from actions.models import Intent
from tests.api.calling import claim, make_api, problem, report
from tests.factories import make_kind
from tests.limits.limiting import amounts

pytestmark = pytest.mark.django_db


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/v1/openapi.json").json()
    return found


def holds(document: dict[str, Any], schema: dict[str, Any], body: Any) -> None:
    whole = schema | {"components": document["components"]}
    assert [f"{e.json_path}: {e.message}" for e in Draft202012Validator(whole).iter_errors(body)] == []


def test_a_refusal_says_which_limit_what_is_left_and_when(document: dict[str, Any]) -> None:
    api = make_api(limits=amounts(per_day=10_000, per_action=9_000))
    first = api.intent(amount="60.00")
    body = problem(api.propose(amount="60.00", subject="order-2"), 409, "limit_exceeded")
    at = (first.created_at + timedelta(hours=24)).isoformat().replace("+00:00", "Z")
    assert body["limit"] == {
        "name": "per_day",
        "kind": None,
        "amount": "100.00",
        "currency": "EUR",
        "count": None,
        "minutes": None,
    }
    assert (body["remaining"], body["resets_at"], body["retryable"]) == ("40.00", at, False)
    for words in ("Nothing was recorded and nothing was sent", "Don't split it", "can be asked for again at"):
        assert words in body["detail"]
    assert "failed" not in body["detail"]
    above = problem(api.propose(amount="90.01", subject="order-2"), 409, "limit_exceeded")
    assert (above["remaining"], above["resets_at"]) == ("90.00", None)
    assert "tell a person" in above["detail"]
    response = document["paths"]["/api/v1/intents"]["post"]["responses"]["409"]
    for found in (body, above):
        holds(document, response["content"]["application/problem+json"]["schema"], found)


def test_the_one_after_the_velocity_is_403() -> None:
    api = make_api(limits={"velocity": {"intents": 1, "minutes": 1}})
    key = "key-of-the-first"
    first = api.propose(key=key)
    body = problem(api.propose(subject="order-2"), 409, "limit_exceeded")
    assert (body["limit"]["name"], body["limit"]["count"], body["limit"]["minutes"]) == ("velocity", 1, 1)
    problem(api.propose(subject="order-2"), 403, "agent_paused")
    again = api.propose(key=key)
    assert (again.status_code, again["Idempotent-Replayed"]) == (200, "true")
    assert again.json()["id"] == first.json()["id"]


def test_me_tells_each_limit_and_what_is_left_of_it(document: dict[str, Any]) -> None:
    kind = make_kind()
    narrower = {"kinds": {kind.name: {"open": 3}, "gone": {"open": 1}}}
    limits = amounts("EUR", per_action=9_000, per_day=10_000, per_subject_day=9_500) | narrower
    api = make_api(kind, limits=limits | {"velocity": {"intents": 5, "minutes": 10}})
    intent = api.intent(amount="60.00")
    body = api.get("/me").json()
    told = {(one["name"], one["kind"]): one for one in body["limits"]["set"]}
    day = told["per_day", None]
    assert (day["amount"], day["used"], day["remaining"]) == ("100.00", "60.00", "40.00")
    assert day["resets_at"] == (intent.created_at + timedelta(hours=24)).isoformat().replace("+00:00", "Z")
    for name in ("per_action", "per_subject_day"):
        one = told[name, None]
        assert (one["used"], one["remaining"], one["resets_at"]) == (None, None, None)
    speed = told["velocity", None]
    assert (speed["used"], speed["remaining"], speed["minutes"]) == (1, 4, 10)
    mine = told["open", kind.name]
    assert (mine["count"], mine["used"], mine["remaining"], mine["resets_at"]) == (3, 1, 2, None)
    assert told["open", "gone"]["used"] == 0
    holds(document, {"$ref": "#/components/schemas/AgentOut"}, body)


def test_every_name_is_documented() -> None:
    assert set(LimitOut.model_json_schema()["properties"]["name"]["enum"]) == set(LimitName)


def test_limits_cost_two_queries_and_none_without_any() -> None:
    kind = make_kind()
    narrower = {"kinds": {kind.name: amounts(per_day=10**9, per_subject_day=10**9) | {"open": 100}}}
    every = amounts(per_action=10**9, per_day=10**9, per_subject_day=10**9)
    every |= {"open": 100, "velocity": {"intents": 100, "minutes": 10}} | narrower
    costs = []
    for limits in ({}, every):
        api = make_api(kind, limits=limits)
        api.recorded(subject=f"first-{len(costs)}")
        found = []
        for number in range(3):
            with CaptureQueriesContext(connection) as queries:
                api.recorded(subject=f"order-{len(costs)}-{number}")
            found.append(sum("SAVEPOINT" not in query["sql"] for query in queries))
        costs.append(min(found))
    # All sums in one; on PostgreSQL the agent's lock before it. What the rest costs: tests/api/test_proposing.py.
    without, with_all = costs
    assert with_all - without == (2 if connection.vendor == "postgresql" else 1), costs


# --- agents of one group read each other's intents


def test_a_group_reads_lists_and_follows_each_others_intents_and_no_more() -> None:
    kind = make_kind()
    owner = make_api(kind, token={"may_report": True}, group="support")
    mate = make_api(kind, token={"may_report": True}, group="support")
    stranger = make_api(kind, token={"may_report": True}, group="sales")
    intent = owner.recorded(executor="caller")
    path = f"/intents/{intent['id']}"
    for tail in ("", "/history"):
        assert mate.get(path + tail).status_code == 200
        problem(stranger.get(path + tail), 404, "not_found")
    assert [one["id"] for one in mate.get("/intents").json()["data"]] == [intent["id"]]
    assert stranger.get("/intents").json()["data"] == []
    assert "history" not in json.dumps(mate.get(path).json())
    for other, status in ((mate, 403), (stranger, 404)):
        assert other.post(f"{path}/cancel").status_code == status
        assert claim(other, intent["id"]).status_code == status
        assert report(other, intent["id"], "confirmed").status_code == status
    assert Intent.objects.get().status == "recorded"
    claimed = claim(owner, intent["id"]).json()["attempt"]["number"]
    assert report(mate, intent["id"], "confirmed", attempt=claimed).status_code == 403
    assert Intent.objects.get().status == "submitted"
    assert owner.post(f"{path}/cancel").status_code == 409


def test_a_groups_limits_are_each_agents_own() -> None:
    kind = make_kind()
    one, other = (make_api(kind, group="support", limits={"open": 1}) for _ in range(2))
    one.recorded(subject="order-1")
    other.recorded(subject="order-2")
    problem(one.propose(subject="order-3"), 409, "limit_exceeded")
