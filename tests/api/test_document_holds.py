"""The OpenAPI document against a real web process: schemathesis makes up requests by it and checks every answer."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from actions.models import Agent, Kind
from config import children, parts
from config.management.commands.demo import _free_port
from tests.factories import make_agent, make_kind, make_token

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.either_database]

# What a subject or a cursor looks like, no JSON Schema tells: what it allows may be refused (400, 422). Here every
# request carries a token; the answers to a missing one are tests/api/test_auth.py's.
CHECKS = ("--checks", "all", "--exclude-checks", "positive_data_acceptance,ignored_auth")


@pytest.fixture
def kind() -> Kind:
    return make_kind()


@pytest.fixture
def agent(kind: Kind) -> Agent:
    return make_agent(kind, rate_per_minute=100_000)


@pytest.fixture
def web(database_url: str, tmp_path: Path) -> Iterator[str]:
    """The base URL of granian with the application on this test's database."""
    part = parts.web(
        host="127.0.0.1",
        port=_free_port(),
        processes=1,
        threads=8,
        env={"DATABASE_URL": database_url},
        log=tmp_path / "web.log",
    )
    part.start()
    assert part.answers is not None
    assert part.process is not None
    try:
        assert children.wait_until(part.answers, within_s=40), (tmp_path / "web.log").read_text()
        yield f"http://127.0.0.1:{part.command[part.command.index('--port') + 1]}"
    finally:
        children.stop([part.process])


def narrowed(document: dict[str, Any], kind: Kind) -> dict[str, Any]:
    """The document with what exists here in the places of any text, or nothing made up would ever be recorded."""
    record = document["paths"]["/api/v1/intents"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    record["required"] = ["kind", "subject", "amount", "currency"]
    record["properties"] |= {
        "kind": {"enum": [kind.name]},
        "subject": {"type": "string", "pattern": "^order-[0-9]{1,6}$"},
        "currency": {"enum": ["EUR"]},
        "amount": {"enum": ["50.00", "0.01", 7, "700.00"]},
        "params": {"type": "object", "maxProperties": 0},
        "send_before": {"type": "null"},
        "claim_token": {"type": "null"},
        "repeat_of": {"type": "null"},
    }
    hook = document["paths"]["/api/v1/webhooks/{downstream}"]["post"]
    hook["parameters"][0]["schema"] = {"type": "string", "enum": [kind.downstream.name]}
    return document


def schemathesis(web: str, document: Path, token: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", str(document), "--url", web, *CHECKS, *arguments),
            *("--header", f"Authorization: Bearer {token}", "--header", "Prefer: wait=0"),
            *("--seed", "4", "--generation-database", "none", "--continue-on-failure", "--no-color"),
        ],
        cwd=document.parent,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )


def test_every_answer_is_as_documented_and_none_is_a_5xx(web: str, kind: Kind, agent: Agent, tmp_path: Path) -> None:
    document = tmp_path / "openapi.json"
    found = requests.get(f"{web}/api/v1/openapi.json", timeout=10).json()
    document.write_text(json.dumps(narrowed(found, kind)))
    propose = make_token(agent, may_report=True)
    done = schemathesis(web, document, propose, "--max-examples", "6")
    assert done.returncode == 0, done.stdout
    assert "API Links:    0 covered" not in done.stdout, "no intent was recorded that the rest could be tried on"
    evidence = make_token(agent, may_propose=False, may_read=False, may_give_evidence=True)
    done = schemathesis(web, document, evidence, "--include-path-regex", "due|evidence", "--phases", "coverage")
    assert done.returncode == 0, done.stdout
