"""actions.tokens and `manage.py create_token`."""

import hashlib
import io
from datetime import timedelta
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times, tokens
from actions.errors import Invalid
from actions.models import Agent, Token
from tests.factories import make_agent

pytestmark = pytest.mark.django_db


@pytest.fixture
def agent() -> Agent:
    return make_agent(name="refund-bot")


def test_only_the_digest_of_a_token_is_stored(agent: Agent) -> None:
    token, text = tokens.create(agent, label="ci")
    assert len(text) == 47
    assert text.startswith("lnd_")
    row = Token.objects.filter(pk=token.pk).values().get()
    assert row["digest"] == hashlib.sha256(text.encode()).hexdigest()
    assert row["prefix"] == text[:12]
    assert not any(text in str(value) for value in row.values())
    history = Token.history.values()  # type: ignore[attr-defined]  # added by django-simple-history
    assert not any("digest" in version or text in str(version) for version in history)


def test_a_valid_token_is_found_with_its_agent_in_one_query(agent: Agent, django_assert_num_queries: Any) -> None:
    _, text = tokens.create(agent)
    tokens.find(text)
    with django_assert_num_queries(2):  # the time, the token
        found = tokens.find(text)
        assert found is not None
        assert found.agent == agent


@pytest.mark.parametrize("text", ["", "lnd_", "Bearer x", "lnd_" + "é" * 43, "lnd_" + "a" * 43, "\ud800"])
def test_a_text_that_is_no_token_finds_nothing(agent: Agent, text: str) -> None:
    tokens.create(agent)
    assert tokens.find(text) is None


def test_a_token_is_valid_before_its_expiry_and_not_from_then_on(
    agent: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    end = times.now() + timedelta(hours=1)
    _, text = tokens.create(agent, expires_at=end)
    monkeypatch.setattr(times, "now", lambda: end - timedelta(milliseconds=1))
    assert tokens.find(text) is not None
    monkeypatch.setattr(times, "now", lambda: end)
    assert tokens.find(text) is None


def test_a_revoked_token_is_refused_and_keeps_the_time_of_the_first_revoking(agent: Agent) -> None:
    token, text = tokens.create(agent)
    tokens.revoke(token)
    first = token.revoked_at
    tokens.revoke(Token.objects.get(pk=token.pk))
    assert tokens.find(text) is None
    assert Token.objects.get(pk=token.pk).revoked_at == first is not None


def test_the_last_use_is_written_at_most_once_a_minute(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    token, text = tokens.create(agent)
    start = times.now()
    seen = []
    for seconds in (0, 59, 61):
        monkeypatch.setattr(times, "now", lambda at=seconds: start + timedelta(seconds=at))
        with CaptureQueriesContext(
            connection,
        ) as queries:
            tokens.find(text)
        seen.append(any("UPDATE" in query["sql"] for query in queries))
    assert seen == [True, False, True]
    assert Token.objects.get(pk=token.pk).last_used_at == start + timedelta(seconds=61)


@pytest.mark.parametrize("scope", ["may_propose", "may_report"])
def test_evidence_is_never_granted_with_propose_or_report(agent: Agent, scope: str) -> None:
    scopes = {"may_propose": False, "may_report": False} | {scope: True}
    with pytest.raises(Invalid):
        tokens.create(agent, may_give_evidence=True, **scopes)
    assert not Token.objects.exists()


def _create(*arguments: str) -> str:
    out = io.StringIO()
    call_command("create_token", *arguments, stdout=out, stderr=io.StringIO())
    return out.getvalue()


def test_the_command_prints_the_token_alone_and_once(agent: Agent) -> None:
    text = _create("refund-bot", "--label", "ci", "--report", "--expires-days", "30")
    token = tokens.find(text.strip())
    assert text.count("\n") == 1
    assert token is not None
    assert token.scopes == {"propose", "report", "read"}
    assert token.label == "ci"
    assert timedelta(days=29) < token.expires_at - times.now() <= timedelta(days=30)


def test_the_command_gives_an_evidence_token_no_propose_unless_told_to(agent: Agent) -> None:
    token = tokens.find(_create("refund-bot", "--evidence").strip())
    assert token is not None
    assert token.scopes == {"evidence", "read"}
    with pytest.raises(CommandError, match="never granted together"):
        _create("refund-bot", "--evidence", "--propose")


def test_the_command_names_the_agents_that_there_are(agent: Agent) -> None:
    with pytest.raises(CommandError, match=r"no agent 'refundbot'.*refund-bot"):
        _create("refundbot")
