"""Editing agents and tokens in the admin."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from actions import tokens
from actions.admin.agents import TokenForm
from actions.models import Agent, Token
from tests.admin.conftest import errors, form_of, save, url
from tests.factories import make_agent, make_kind

pytestmark = pytest.mark.django_db


def test_the_built_in_agent_keeps_its_name(page: Client) -> None:
    agent = make_agent(name="application-x", built_in=True)
    save(page, agent, name="renamed", title="The application")
    agent.refresh_from_db()
    assert (agent.name, agent.title) == ("application-x", "The application")


def test_an_agent_is_paused_with_a_reason(page: Client) -> None:
    agent = make_agent()
    assert "pause_reason" in errors(save(page, agent, paused="on"))
    save(page, agent, paused="on", pause_reason="Runs wild")
    agent.refresh_from_db()
    assert agent.paused


def test_an_agents_kinds_are_part_of_its_version(page: Client) -> None:
    kind, agent = make_kind(), make_agent()
    opened = form_of(page.get(url(agent)))
    save(page, agent, kinds=[kind.pk])
    response = page.post(url(agent), opened | {"title": "late"}, follow=True)
    assert "after you opened the page" in errors(response)
    assert list(Agent.objects.get(pk=agent.pk).kinds.all()) == [kind]


def add_token(page: Client, agent: Agent, **changes: Any) -> Any:
    data = {"agent": agent.pk, "label": "ci", "may_propose": "on", "may_read": "on"} | changes
    return page.post("/admin/actions/token/add/", data, follow=True)


def test_a_new_token_is_shown_once_and_works(page: Client) -> None:
    response = add_token(page, make_agent())
    found = re.findall(r"lnd_[A-Za-z0-9_-]{43}", response.content.decode())
    assert len(found) == 1
    assert tokens.find(found[0]) is not None
    for path in ("/admin/actions/token/", url(Token.objects.get()), "/admin/"):
        assert found[0] not in page.get(path).content.decode()
    assert not any(found[0] in entry.change_message for entry in LogEntry.objects.all())


def test_evidence_together_with_propose_is_an_error_of_the_form(page: Client) -> None:
    response = add_token(page, make_agent(), may_give_evidence="on")
    assert "never granted together" in errors(response)
    assert not Token.objects.exists()


def test_of_an_existing_token_only_label_expiry_and_revoking_change(page: Client) -> None:
    token, _ = tokens.create(make_agent())
    other = make_agent()
    save(page, token, label="new", may_report="on", agent=other.pk, expires_at_0="2099-01-01", expires_at_1="00:00")
    now = Token.objects.get(pk=token.pk)
    assert (now.label, now.may_report, now.agent) == ("new", False, token.agent)
    assert now.expires_at is not None
    assert now.digest == token.digest


def test_a_token_is_revoked_in_its_form_and_by_the_action(page: Client) -> None:
    (one, first), (two, second) = tokens.create(make_agent()), tokens.create(make_agent())
    save(page, one, revoke="on")
    page.post("/admin/actions/token/", {"action": "revoke_selected", "_selected_action": [two.pk]}, follow=True)
    assert tokens.find(first) is None
    assert tokens.find(second) is None
    assert "revoke" not in form_of(page.get(url(one)))


def test_saving_a_token_leaves_what_the_machine_writes_meanwhile(
    page: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, text = tokens.create(make_agent())

    def use_it(form: TokenForm) -> dict[str, list[str]]:
        """Between the form's reading of the row and its saving."""
        tokens.find(text)
        return {}

    monkeypatch.setattr(TokenForm, "faults", use_it)
    save(page, token, label="new")
    now = Token.objects.get(pk=token.pk)
    assert now.label == "new"
    assert now.last_used_at is not None
