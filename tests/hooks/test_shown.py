"""What is shown of it: the OpenAPI document, the admin, the agent's view of the history."""

from typing import Any

import pytest
from django.test import Client
from jsonschema import Draft202012Validator

from actions import times
from actions.connectors import registry
from actions.connectors.base import Notice
from actions.models import Evidence, Intent
from reconciliation import orphans
from reconciliation.api.evidence_fields import ENTRY, EVIDENCE
from reconciliation.models import Delivery, LedgerEntry, Review
from reconciliation.webhooks import applying
from tests.admin.conftest import browser_of
from tests.api.calling import make_api
from tests.desk.steps import log_in, text_of
from tests.factories import make_intent, make_person
from tests.flow.world import Clock
from tests.hooks.hooking import Hooks, Says, make_hooks
from tests.hooks.test_services import ROWS, due, row, said

pytestmark = pytest.mark.django_db


@pytest.fixture
def document() -> dict[str, Any]:
    found: dict[str, Any] = Client().get("/api/v1/openapi.json").json()
    return found


def test_the_document_names_the_routes_and_what_they_refuse(document: dict[str, Any]) -> None:
    webhook = document["paths"]["/api/v1/webhooks/{downstream}"]["post"]
    assert webhook["security"] == []
    assert {"204", "401", "404", "413", "503"} <= set(webhook["responses"])
    due = document["paths"]["/api/v1/checks/due"]["get"]
    assert due["security"] == [{"Bearer": []}]
    assert {parameter["name"] for parameter in due["parameters"]} == {"limit", "kind"}
    evidence = document["paths"]["/api/v1/intents/{intent_id}/evidence"]["post"]
    assert "invalid" in evidence["responses"]["422"]["description"]
    assert "agent_paused" in evidence["responses"]["403"]["description"]


def test_evidence_is_documented_field_by_field(document: dict[str, Any]) -> None:
    operation = document["paths"]["/api/v1/intents/{intent_id}/evidence"]["post"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == set(EVIDENCE)
    entry = body["properties"]["entries"]["items"]
    assert set(entry["properties"]) == set(ENTRY)
    assert body["additionalProperties"] is entry["additionalProperties"] is False


def test_what_is_answered_is_what_is_documented(clock: Clock, document: dict[str, Any]) -> None:
    books = make_hooks(clock, look_up="service")
    service, intent = make_api(books.kind, token=ROWS), books.unknown()
    books.later(40)
    answers = {"DueOut": {"data": due(service)}, "VerdictOut": said(service, intent, row(intent))}
    for name, body in answers.items():
        schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
        assert [f"{e.json_path}: {e.message}" for e in Draft202012Validator(schema).iter_errors(body)] == []


def test_the_admin_shows_a_delivery_and_nothing_in_it_runs(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    nasty = "<script>alert(1)</script>\u202e"
    intent = hooks.unknown()
    delivery = hooks.tell(intent)
    monkeypatch.setattr(registry, "get", lambda _: Says(Notice(nasty, times.now(), topic=nasty, keys=(nasty,))))
    assert hooks.deliver({}).status_code == 204
    page = browser_of(make_person("admin", is_superuser=True))
    for path in ("", *(f"{pk}/change/" for pk in Delivery.objects.values_list("pk", flat=True))):
        html = page.get(f"/admin/reconciliation/delivery/{path}").content.decode()
        assert "<script>alert" not in html
        assert "\u202e" not in html
    html = page.get(f"/admin/reconciliation/delivery/{delivery.pk}/change/").content.decode()
    assert "its content was judged" in html
    assert f"/admin/actions/evidence/{delivery.evidence_id}/change/" in html
    assert "/admin/reconciliation/ledgerentry/" in html
    assert page.post(f"/admin/reconciliation/delivery/{delivery.pk}/change/", {}).status_code == 403


def test_the_agent_sees_the_verdict_and_not_who_told(hooks: Hooks) -> None:
    intent = hooks.unknown()
    hooks.tell(intent)
    owner = Intent.objects.get(pk=intent.pk).agent
    api = make_api(hooks.kind)
    api.agent.group = owner.group = "one"
    api.agent.save()
    owner.save()
    body = api.get(f"/intents/{intent.pk}/history").json()
    assert [set(check) for check in body["checks"]] == [{"at", "verdict"}]
    assert "webhook" not in str(body)


def test_a_case_shows_what_a_webhook_said_as_it_was_stored(watched: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one that names several intents, and is a reason to look and nothing else; secrets masked."""
    one, being_sent = watched.unknown(), watched.submitted()
    keys = (one.idempotency_key, being_sent.idempotency_key)
    monkeypatch.setattr(registry, "get", lambda _: Says(Notice("evt", times.now(), keys=keys)))
    assert watched.deliver({"said": "<b>it was done</b>", "iban": "DE89370400440532013000"}).status_code == 204
    watched.later(60)
    assert applying.apply(Delivery.objects.get().pk), "tried again because of the one that is being sent"
    assert Delivery.objects.get().tries == 2
    reader, _ = log_in()
    for intent in (one, being_sent):
        page = text_of(reader.get(f"/intents/{intent.pk}/"))
        assert "1 more piece (requests, answers, webhooks, pages), as stored" in page
        assert "it was done&lt;/b&gt;" in page
        assert "DE89370400440532013000" not in page
        assert Evidence.objects.filter(intent=intent, kind="webhook").count() == 1


def test_the_case_of_an_entry_shows_the_webhook_that_told_of_it(watched: Hooks) -> None:
    told = watched.entry(make_intent(watched.kind), id="re_9", idempotency_key=..., order="order-of-nobody")
    assert watched.deliver(told | {"memo": "<b>of nobody</b>"}).status_code == 204
    watched.later(3_600)
    entry = LedgerEntry.objects.get(entry_id="re_9")
    assert orphans.open_case(entry.pk)
    page = text_of(log_in()[0].get(f"/reviews/{Review.objects.get(entry=entry).pk}/"))
    assert "of nobody&lt;/b&gt;" in page
