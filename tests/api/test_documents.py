"""The OpenAPI document, the page that shows it, and the health check."""

import re
from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from config.middleware import POLICY
from tests.api.calling import Api, claim, make_caller, report
from tests.api.test_reading import unknown

pytestmark = pytest.mark.django_db


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/v1/openapi.json").json()
    return found


def test_the_document_names_every_route(document: dict[str, Any]) -> None:
    assert document["openapi"].startswith("3.1")
    assert {(path, method) for path, methods in document["paths"].items() for method in methods} >= {
        ("/api/v1/intents", "post"),
        ("/api/v1/intents", "get"),
        ("/api/v1/intents/{intent_id}", "get"),
        ("/api/v1/intents/{intent_id}/history", "get"),
        ("/api/v1/intents/{intent_id}/cancel", "post"),
        ("/api/v1/intents/{intent_id}/attempts", "post"),
        ("/api/v1/intents/{intent_id}/attempts/{number}/renew", "post"),
        ("/api/v1/intents/{intent_id}/report", "post"),
        ("/api/v1/events", "get"),
        ("/api/v1/me", "get"),
        ("/api/v1/kinds", "get"),
    }
    assert document["components"]["securitySchemes"]["Bearer"]["scheme"] == "bearer"


def test_it_names_the_codes_of_each_status(document: dict[str, Any]) -> None:
    responses = document["paths"]["/api/v1/intents"]["post"]["responses"]
    for status, code in (("409", "unsettled_duplicate"), ("422", "key_reused"), ("503", "unavailable")):
        assert code in responses[status]["description"]
        assert "application/problem+json" in responses[status]["content"]


def test_what_is_answered_is_what_is_documented(api: Api, document: dict[str, Any]) -> None:
    def holds(name: str, body: Any) -> None:
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        found = [f"{e.json_path}: {e.message}" for e in Draft202012Validator(schema).iter_errors(body)]
        assert found == []

    holds("IntentOut", api.recorded(subject="o-1"))
    holds("IntentOut", api.recorded(subject="o-2", executor="caller", claim_token="t"))
    held = api.recorded(subject="o-3", amount="20000.00", context={"run": "r"})
    holds("IntentOut", held)
    intent = api.intent(subject="o-4")
    unknown(intent)
    holds("IntentOut", api.get(f"/intents/{intent.pk}").json())
    holds("HistoryOut", api.get(f"/intents/{intent.pk}/history").json())
    holds("PageOut", api.get("/intents").json())
    assert len(api.get("/events").json()["data"]) > 5
    holds("EventsOut", api.get("/events").json())
    mine = make_caller(api.kind)
    claimed = mine.recorded(subject="o-5", executor="caller")
    holds("ClaimOut", claim(mine, claimed["id"]).json())
    holds("ClaimOut", mine.post(f"/intents/{claimed['id']}/attempts/1/renew", {"claim_token": "t-1"}).json())
    holds("IntentOut", report(mine, claimed["id"], "confirmed").json())
    holds("AgentOut", api.get("/me").json())
    holds("KindsOut", api.get("/kinds").json())


def test_the_proposal_is_documented_field_by_field(document: dict[str, Any]) -> None:
    from actions.api.fields import NAMES

    body = document["paths"]["/api/v1/intents"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == set(NAMES)
    assert body["additionalProperties"] is False


def test_claims_and_reports_are_documented_field_by_field(document: dict[str, Any]) -> None:
    from actions.api.claim_fields import CLAIM, OUTCOMES, REPORT

    def body_of(tail: str) -> dict[str, Any]:
        operation = document["paths"][f"/api/v1/intents/{{intent_id}}/{tail}"]["post"]
        assert "may_have_happened" in operation["responses"]["409"]["description"]
        found: dict[str, Any] = operation["requestBody"]["content"]["application/json"]["schema"]
        assert found["additionalProperties"] is False
        return found

    for tail, names in (("attempts", CLAIM), ("attempts/{number}/renew", CLAIM), ("report", REPORT)):
        assert set(body_of(tail)["properties"]) == set(names)
    assert body_of("report")["properties"]["outcome"]["enum"] == list(OUTCOMES)


def test_the_page_needs_nothing_from_elsewhere_and_no_inline_script() -> None:
    answer = Client().get("/api/v1/docs")
    assert answer.status_code == 200
    assert answer["Content-Security-Policy"] == POLICY
    html = answer.content.decode()
    for tag in re.findall(r"<script\b[^>]*>", html):
        assert 'src="/static/' in tag or 'type="application/json"' in tag, tag
    assert not re.search(r"""(src|href)=["'](https?:)?//""", html)
    assert "style=" not in html
    for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', html):
        assert Client().get(address).status_code == 200, address


def test_health_costs_one_query_and_no_redis(django_assert_num_queries: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise AssertionError("Redis was asked")

    monkeypatch.setattr("redis.connection.AbstractConnection.connect", away)
    with django_assert_num_queries(1):
        answer = Client().get("/healthz")
    assert (answer.status_code, answer.content, answer["Content-Type"]) == (200, b"ok", "text/plain")
