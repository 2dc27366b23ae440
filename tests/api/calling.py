"""Calls the API as an agent would."""

import itertools
import json
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpResponse
from django.test import Client

from actions.models import Agent, Intent, Kind
from tests.factories import make_agent, make_kind, make_token

_keys = itertools.count(1)
INTENTS = "/api/v1/intents"


def new_key() -> str:
    return f"key-{next(_keys)}"


@dataclass
class Api:
    """One agent with its token, and the kind that it may propose."""

    agent: Agent
    kind: Kind
    token: str
    client: Client = field(default_factory=lambda: Client(raise_request_exception=False))

    def headers(self, **more: str | None) -> dict[str, str]:
        found = {"Authorization": f"Bearer {self.token}"} | more
        return {name.replace("_", "-"): text for name, text in found.items() if text is not None}

    def get(self, path: str, query: Any = None, **headers: str | None) -> Any:
        return self.client.get(_address(path), query, headers=self.headers(**headers))

    def post(self, path: str, body: Any = b"", **headers: str | None) -> Any:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        return self.client.generic(
            "POST", _address(path), raw, content_type="application/json", headers=self.headers(**headers)
        )

    def body(self, **fields: Any) -> dict[str, Any]:
        """A plain proposal; a field that is `...` is left out."""
        found = {"kind": self.kind.name, "subject": "order-1", "amount": "50.00", "currency": "EUR"} | fields
        return {name: value for name, value in found.items() if value is not ...}

    def propose(self, *, key: str | None = None, headers: Any = None, **fields: Any) -> Any:
        return self.post("/intents", self.body(**fields), Idempotency_Key=key or new_key(), **(headers or {}))

    def propose_raw(self, raw: bytes, **headers: str | None) -> Any:
        return self.post("/intents", raw, **({"Idempotency_Key": new_key()} | headers))

    def recorded(self, **fields: Any) -> dict[str, Any]:
        """Proposes, and gives the recorded intent's JSON."""
        answer = self.propose(**fields)
        assert answer.status_code == 201, answer.content
        found: dict[str, Any] = answer.json()
        return found

    def intent(self, **fields: Any) -> Intent:
        return Intent.objects.get(pk=self.recorded(**fields)["id"])


def make_api(kind: Kind | None = None, *, token: dict[str, Any] | None = None, **agent: Any) -> Api:
    kind = kind or make_kind()
    found = make_agent(kind, **agent)
    return Api(found, kind, make_token(found, **(token or {})))


def _address(path: str) -> str:
    return path if path.startswith("/api/") else f"/api/v1{path}"


def fields_of(answer: HttpResponse) -> list[str]:
    """The fields that a 422 names."""
    body = json.loads(answer.content)
    assert (answer.status_code, body["code"]) == (422, "invalid"), body
    return [error["field"] for error in body["errors"]]


def problem(answer: Any, status: int, code: str) -> dict[str, Any]:
    """The problem's body, after looking at its form."""
    assert answer["Content-Type"] == "application/problem+json", answer.content
    body: dict[str, Any] = answer.json()
    assert (answer.status_code, body["status"], body["code"]) == (status, status, code), body
    assert {"type", "title", "detail", "retryable"} <= set(body)
    return body


def make_caller(kind: Kind | None = None, **agent: Any) -> Api:
    """An agent that carries out its intents itself: its token may report."""
    return make_api(kind, token={"may_report": True}, **agent)


def attempts_of(intent_id: Any) -> str:
    return f"/intents/{intent_id}/attempts"


def claim(api: Api, intent_id: Any, token: str = "t-1", **fields: Any) -> Any:
    return api.post(attempts_of(intent_id), {"claim_token": token} | fields)


def report(api: Api, intent_id: Any, outcome: Any, *, attempt: Any = 1, token: Any = "t-1", **fields: Any) -> Any:
    answer = {"answer": {"error": "declined"}} if outcome == "failed" else {}
    body = {"attempt": attempt, "claim_token": token, "outcome": outcome} | answer | fields
    return api.post(f"/intents/{intent_id}/report", {name: value for name, value in body.items() if value is not ...})
