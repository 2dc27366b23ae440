"""Pausing an agent, a kind or a downstream from the desk: who may, what follows, who is told."""

import threading
from typing import Any

import pytest
from django.db import connection, connections
from django.test.utils import CaptureQueriesContext

from actions import dispatch, pausing, services
from actions.errors import AgentPaused, Invalid, KindPaused, NotFound, PersonNotAllowed
from actions.models import Agent, Downstream, Intent, Kind
from reconciliation.reviews import pausing as by_people
from tests import factories
from tests.desk_wild import scenes
from tests.desk_wild.scenes import main_of
from tests.pages.cases import log_in

pytestmark = pytest.mark.django_db


def scene(scope: str) -> Any:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    return {"agent": agent, "kind": kind, "downstream": kind.downstream}[scope]


def given(scope: str, row: Any, **more: str) -> dict[str, str]:
    return {"what": f"{scope}:{row.name}", "reason": "Refunds without orders"} | more


@pytest.mark.parametrize("scope", ["agent", "kind", "downstream"])
def test_a_supervisor_pauses_it_and_lets_it_go_on_with_reasons(scope: str) -> None:
    row = scene(scope)
    client, person = log_in("supervisor", first_name="Sofia")
    page = main_of(client.post("/pauses/pause/", given(scope, row), follow=True))
    row.refresh_from_db()
    assert (row.paused, row.pause_reason) == (True, "Refunds without orders")
    assert f"Paused: the {scope} {row.name}." in page
    assert "Refunds without orders" in page
    assert "Sofia" in page
    history = row.history.first()
    assert (history.history_user, history.paused) == (person, True)
    page = main_of(client.post("/pauses/resume/", given(scope, row, reason="Mended"), follow=True))
    row.refresh_from_db()
    assert (row.paused, row.pause_reason) == (False, "")
    assert f"Resumed: the {scope} {row.name}. What waited is sent from now on." in page
    assert "Mended" in page
    assert "Nothing is paused." in page
    history = row.history.first()
    assert (history.history_user, history.history_change_reason, history.paused) == (person, "Mended", False)


@pytest.mark.parametrize("scope", ["agent", "kind", "downstream"])
def test_the_very_next_claim_finds_nothing_to_send(scope: str) -> None:
    kind = scenes.sendable()
    agent = factories.make_agent(kind)
    row = {"agent": agent, "kind": kind, "downstream": kind.downstream}[scope]
    intents = [scenes.recorded(kind, agent) for _ in range(3)]
    assert len(dispatch.claim(slots=1)) == 1
    by_people.pause(scope, row.name, person=factories.make_person("supervisor"), reason="x")
    assert dispatch.claim(slots=8) == []
    by_people.resume(scope, row.name, person=factories.make_person("supervisor"), reason="x")
    assert len(dispatch.claim(slots=8)) == 2
    assert not Intent.objects.filter(pk__in=[one.pk for one in intents], status="recorded").exists()


def test_what_is_proposed_meanwhile_is_refused() -> None:
    kind, person = factories.make_kind(), factories.make_person("supervisor")
    asked: dict[str, Any] = {"kind": kind.name, "subject": "order-1", "amount": "5.00", "currency": "EUR"}
    by_people.pause("agent", services.application().name, person=person, reason="x")
    with pytest.raises(AgentPaused):
        services.record_intent(**asked, executor="landed")
    by_people.resume("agent", "application", person=person, reason="x")
    by_people.pause("kind", kind.name, person=person, reason="x")
    with pytest.raises(KindPaused):
        services.record_intent(**asked, executor="landed")


def test_whoever_comes_second_is_told_by_whom_and_why() -> None:
    agent = scene("agent")
    jon = factories.make_person("supervisor", first_name="Jon")
    by_people.pause("agent", agent.name, person=jon, reason="Loops")
    client, _ = log_in("supervisor")
    page = main_of(client.post("/pauses/pause/", given("agent", agent, reason="Mine"), follow=True))
    assert f"The agent {agent.name} is paused already, by Jon at " in page
    assert "Loops. Nothing was changed." in page
    agent.refresh_from_db()
    assert agent.pause_reason == "Loops"
    by_people.resume("agent", agent.name, person=jon, reason="Well again")
    page = main_of(client.post("/pauses/resume/", given("agent", agent), follow=True))
    assert f"The agent {agent.name} is running already, by Jon at " in page
    assert "Well again. Nothing was changed." in page


def test_a_stale_page_does_not_end_a_pause_that_it_never_showed() -> None:
    agent, jon = scene("agent"), factories.make_person("supervisor", first_name="Jon")
    first = by_people.pause("agent", agent.name, person=jon, reason="Loops")
    assert first.newest is not None
    by_people.resume("agent", agent.name, person=jon, reason="Well")
    by_people.pause("agent", agent.name, person=jon, reason="Worse than before")
    client, _ = log_in("supervisor")
    response = client.post("/pauses/resume/", given("agent", agent, seen=str(first.newest.seen)), follow=True)
    assert f"The agent {agent.name} was paused anew since you opened the page, by Jon" in main_of(response)
    agent.refresh_from_db()
    assert agent.paused


@pytest.mark.django_db(transaction=True)
def test_of_two_at_once_one_wins_and_the_other_is_told() -> None:
    agent = scene("agent")
    people = [factories.make_person("supervisor") for _ in range(4)]
    came: list[pausing.Changed] = []

    def press(number: int) -> None:
        came.append(by_people.pause("agent", agent.name, person=people[number], reason=f"reason {number}"))
        connections.close_all()

    threads = [threading.Thread(target=press, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (won,) = [one for one in came if one.changed]
    assert len(came) == 4
    assert {one.newest for one in came} == {won.newest}
    assert Agent.history.filter(id=agent.pk, paused=True).count() == 1  # type: ignore[attr-defined]


@pytest.mark.parametrize("role", ["reviewer", "auditor"])
def test_others_see_what_is_paused_and_why_and_change_nothing(role: str) -> None:
    agent = scene("agent")
    by_people.pause("agent", agent.name, person=factories.make_person("supervisor", first_name="Jon"), reason="Loops")
    client, person = log_in(role)
    page = main_of(client.get("/pauses/"))
    for words in (agent.name, "Loops", "Jon"):
        assert words in page
    assert "<form" not in page
    for path in ("/pauses/pause/", "/pauses/resume/"):
        assert client.post(path, given("agent", agent)).status_code == 403
        for function in (by_people.pause, by_people.resume):
            with pytest.raises(PersonNotAllowed):
                function("agent", agent.name, person=person, reason="x")
    agent.refresh_from_db()
    assert (agent.paused, agent.pause_reason) == (True, "Loops")


def test_a_reviewer_is_told_who_may() -> None:
    agent = scene("agent")
    client, _ = log_in()
    response = client.post("/pauses/pause/", given("agent", agent))
    assert response.status_code == 403
    assert "Only supervisors pause things and let them go on, so nothing was changed." in main_of(response)


@pytest.mark.parametrize(
    ("wrong", "status", "words"),
    [
        ({"reason": " "}, 422, "Say why: colleagues will ask."),
        ({"reason": "x" * 101}, 422, "at most 100 characters"),
        ({"reason": "a\u202eb"}, 422, "It holds a control or invisible character."),
        ({"what": "agent:nobody-here"}, 404, "There is no agent nobody-here."),
        ({"what": "world:x"}, 422, "Choose one of the list."),
        ({"what": "agent"}, 422, "Choose one of the list."),
        ({"what": ""}, 422, "Say what."),
    ],
)
def test_what_can_not_be_taken_is_said(wrong: dict[str, str], status: int, words: str) -> None:
    agent = scene("agent")
    client, _ = log_in("supervisor")
    response = client.post("/pauses/pause/", given("agent", agent) | wrong)
    assert response.status_code == status
    assert words in main_of(response)
    agent.refresh_from_db()
    assert not agent.paused


def test_the_functions_refuse_what_the_form_refuses() -> None:
    agent, person = scene("agent"), factories.make_person("supervisor")
    for reason in ("", "  ", "x" * 101, "a\u200bb"):
        with pytest.raises(Invalid):
            by_people.pause("agent", agent.name, person=person, reason=reason)
        with pytest.raises(Invalid):
            by_people.resume("agent", agent.name, person=person, reason=reason)
    for scope, name in (("agent", "nobody"), ("world", agent.name)):
        with pytest.raises(NotFound):
            by_people.pause(scope, name, person=person, reason="x")


def test_a_get_changes_nothing_and_nobody_is_led_elsewhere() -> None:
    agent = scene("agent")
    client, _ = log_in("supervisor")
    for path in ("/pauses/pause/", "/pauses/resume/"):
        assert client.get(path).status_code == 405
    for back in ("https://evil.example/", "//evil.example/", "javascript:alert(1)", "\\\\evil.example"):
        response = client.post("/pauses/pause/", given("agent", agent, back=back))
        assert response.headers["Location"] == "/pauses/"
    response = client.post("/pauses/pause/", given("agent", agent, back=f"/agent/{agent.name}/?since=1h"))
    assert response.headers["Location"] == f"/agent/{agent.name}/?since=1h"


def test_what_was_paused_elsewhere_says_so() -> None:
    """By the admin (with a person and a reason of the row), by a policy file (a program)."""
    kind = factories.make_kind()
    kind.paused, kind.pause_reason, kind._change_reason = True, "rules change", "apply_policy refunds.toml"
    kind.save()
    down = factories.make_downstream(paused=True, pause_reason="A new copy; not checked yet.")
    Downstream.objects.filter(pk=kind.downstream.pk).update(paused=True)
    client, _ = log_in("auditor")
    page = main_of(client.get("/pauses/"))
    for words in (
        "rules change",
        "apply_policy refunds.toml",
        "A new copy; not checked yet.",
        down.name,
        "not known",
    ):
        assert words in page


def test_the_page_costs_the_same_however_much_is_paused() -> None:
    client, _ = log_in("supervisor")
    person = factories.make_person("supervisor")

    def pause_more(many: int) -> None:
        for _ in range(many):
            agent = scene("agent")
            by_people.pause("agent", agent.name, person=person, reason="x")
            by_people.pause("kind", Kind.objects.order_by("-pk")[0].name, person=person, reason="x")

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert client.get("/pauses/").status_code == 200
        return len(queries)

    pause_more(1)
    few = cost()
    pause_more(6)
    assert cost() == few


def test_names_and_reasons_stay_text() -> None:
    agent = scene("agent")
    Agent.objects.filter(pk=agent.pk).update(title="<script>alert(1)</script>", paused=True, pause_reason="<b>x</b>")
    client, _ = log_in("supervisor")
    page = main_of(client.get("/pauses/"))
    assert "<script" not in page
    assert "<b>x" not in page
    assert "&lt;b&gt;x" in page
