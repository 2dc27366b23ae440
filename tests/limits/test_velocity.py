"""Too fast: the agent is paused once, one incident is open, a person lets it go on."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction

from actions import times
from actions.errors import AgentPaused, LimitExceeded
from actions.models import Agent, Intent, Kind
from reconciliation import incidents, mailing
from reconciliation.models import Incident, IncidentKind, Notice, NoticeKind
from reconciliation.reviews import pausing as by_people
from tests.desk_wild.scenes import main_of
from tests.factories import make_person
from tests.limits.limiting import amounts, ask, made, make_limited, refused
from tests.pages.cases import log_in

pytestmark = pytest.mark.django_db

FAST = {"velocity": {"intents": 2, "minutes": 10}}


def tripped(**more: Any) -> tuple[Agent, Kind, LimitExceeded]:
    agent, kind = make_limited(limits=FAST | more)
    for _ in range(2):
        ask(agent, kind, "1.00")
    error = refused(agent, kind, "1.00")
    agent.refresh_from_db()
    return agent, kind, error


def test_the_agent_is_paused_and_told_to_end_its_turn() -> None:
    agent, kind, error = tripped()
    assert error.limit == {
        "name": "velocity",
        "kind": None,
        "amount": None,
        "currency": None,
        "count": 2,
        "minutes": 10,
    }
    assert (error.remaining, error.resets_at) == (0, None)
    assert "until a person lets you go on" in error.message
    with pytest.raises(AgentPaused):
        ask(agent, kind, "1.00")
    incident = Incident.objects.get()
    assert (incident.kind, incident.agent, incident.reason) == (IncidentKind.AGENT, agent, "velocity")


def test_what_was_proposed_before_the_window_does_not_count() -> None:
    agent, kind = make_limited(limits=FAST)
    for _ in range(2):
        made(ask(agent, kind, "1.00"), ago=timedelta(minutes=10))
    ask(agent, kind, "1.00")
    assert not Incident.objects.exists()


def test_a_person_lets_it_go_on_and_it_is_counted_anew() -> None:
    agent, kind, _ = tripped()
    by_people.resume("agent", agent.name, person=make_person("supervisor"), reason="Looked at it")
    assert Incident.objects.get().closed_at is not None
    agent.refresh_from_db()
    for _ in range(2):
        ask(agent, kind, "1.00")
    refused(agent, kind, "1.00")
    assert Incident.objects.filter(closed_at=None).count() == 1
    assert Incident.objects.count() == 2


def test_let_go_on_elsewhere_the_incident_ends_with_the_next_sweep() -> None:
    tripped()
    incidents.sweep(times.now())
    assert Incident.objects.get().closed_at is None
    Agent.objects.update(paused=False)
    incidents.sweep(times.now())
    assert Incident.objects.get().closed_at is not None


def test_history_says_that_its_limit_paused_it() -> None:
    agent, *_ = tripped()
    newest = agent.history.order_by("-history_id").first()  # type: ignore[attr-defined]
    assert (newest.paused, newest.history_user, newest.history_change_reason) == (True, None, "its velocity limit")
    assert newest.tripped_at == agent.tripped_at


def test_a_transaction_that_is_rolled_back_takes_the_pause_with_it() -> None:
    agent, kind = make_limited(limits=FAST)
    with pytest.raises(LimitExceeded), transaction.atomic():
        for _ in range(3):
            ask(agent, kind, "1.00")
    agent.refresh_from_db()
    assert (agent.paused, Intent.objects.count(), Incident.objects.count()) == (False, 0, 0)


# --- at the desk


def test_it_is_a_line_on_top_of_the_queue_and_a_page_from_which_it_goes_on() -> None:
    agent, *_ = tripped(open=5)
    incident = Incident.objects.get()
    client, _ = log_in("supervisor")
    queue = main_of(client.get("/"))
    assert queue.count('class="outage"') == 1
    assert f"{agent.name}</a>:</strong> an agent was stopped" in queue
    assert "until a supervisor lets it go on" in queue
    path = f"/incidents/{incident.pk}/"
    shown = main_of(client.get(path))
    assert "Proposed too fast: at most 2 proposals in 10 minutes." in shown
    assert "at most 5 unsettled intents at a time" in shown
    given = {"what": f"agent:{agent.name}", "reason": "It was a test", "back": path}
    response = client.post("/pauses/resume/", given, follow=True)
    assert response.redirect_chain == [(path, 302)]
    assert "over</span>" in main_of(response)
    auditor, _ = log_in("auditor")
    assert 'action="/pauses/' not in main_of(auditor.get(path))


def test_the_agents_page_says_what_is_used_of_its_limits() -> None:
    agent, kind = make_limited(limits=amounts(per_day=10_000, per_subject_day=10_000) | FAST)
    ask(agent, kind, "100.00")
    client, _ = log_in()
    shown = main_of(client.get(f"/agent/{agent.name}/"))
    assert "at most 100.00 EUR in 24 hours</td><td>100.00 EUR <strong>used up</strong>" in shown
    assert "at most 2 proposals in 10 minutes</td><td>1 <span" in shown
    assert 'for one subject and its parts</td><td><span class="muted">counted one by one' in shown
    other, _ = make_limited(kind, limits={})
    assert "It may propose" not in main_of(client.get(f"/agent/{other.name}/"))


def test_supervisors_are_written_to() -> None:
    agent, *_ = tripped()
    notice = Notice(kind=NoticeKind.INCIDENT, incident=Incident.objects.get())
    assert "nothing of it is sent until a supervisor lets it go on" in mailing.body([notice])
    assert agent.name in mailing.body([notice])
