"""What an agent did (a kind, a downstream): what is unsent, what may have happened, what landed, in sum."""

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times
from actions.models import Agent, Intent
from actions.statuses import Status
from reconciliation.views import did
from tests import factories
from tests.desk_wild import scenes
from tests.desk_wild.scenes import main_of
from tests.flow.world import Clock
from tests.pages.cases import log_in, text_of

pytestmark = pytest.mark.django_db


def numbers(response: Any) -> dict[str, Any]:
    """Per group: how many, the sum, and what settled."""
    return {
        group.name: [(t.kind, t.currency, t.count, t.amount_minor, t.settled) for t in group.totals]
        for group in response.context["groups"]
    }


def rows_of(response: Any) -> list[str]:
    return [row.intent.subject for row in response.context["page"].rows]


def test_a_support_lead_sees_in_one_look_what_is_unsent_unknown_and_landed() -> None:
    kind = factories.make_kind(title="Refund")
    other = factories.make_kind(kind.downstream, title="Voucher")
    agent, foreign = factories.make_agent(kind, other, name="support-bot"), factories.make_agent(kind)
    scenes.recorded(kind, agent, amount_minor=5_000)
    factories.make_intent(kind, agent, amount_minor=700, to=Status.HELD)
    scenes.unknown(kind, agent, amount_minor=3_000)
    factories.make_intent(kind, agent, to=Status.SUBMITTED, amount_minor=100)
    scenes.landed(kind, agent, amount_minor=5_000)
    scenes.landed(kind, agent, amount_minor=5_000, settled=4_850)
    scenes.landed(other, agent, amount_minor=12, currency="JPY")
    scenes.recorded(kind, foreign, amount_minor=99_999)
    client, _ = log_in("auditor")
    response = client.get("/agent/support-bot/")
    assert numbers(response) == {
        "unsent": [("Refund", "EUR", 2, 5_700, {})],
        "maybe": [("Refund", "EUR", 2, 3_100, {})],
        "landed": [
            ("Refund", "EUR", 2, 10_000, {"EUR": 9_850}),
            ("Voucher", "JPY", 1, 12, {"JPY": 12}),
        ],
        "not": [],
    }
    page = main_of(response)
    for words in ("not paused", "may have happened", "did not happen", "€\u00a057.00", "€\u00a098.50"):
        assert words in page
    assert numbers(client.get(f"/kind/{kind.name}/"))["unsent"] == [("Refund", "EUR", 3, 105_699, {})]
    assert len(numbers(client.get(f"/downstream/{kind.downstream.name}/"))["landed"]) == 2


def test_unsent_counts_whenever_it_was_proposed_and_the_rest_since_then(clock: Clock) -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    clock.ahead = timedelta(days=-3)
    for make in (scenes.recorded, scenes.landed, scenes.unknown):
        make(kind, agent)
    clock.ahead = timedelta(0)
    scenes.landed(kind, agent)
    client, _ = log_in()

    def counts(path: str) -> tuple[int, ...]:
        return tuple(group.count for group in client.get(path).context["groups"])

    for scope, row in (("agent", agent), ("kind", kind), ("downstream", kind.downstream)):
        path = f"/{scope}/{row.name}/"
        assert counts(path) == (1, 0, 1, 0)
        assert counts(f"{path}?since=7d") == (1, 1, 2, 0)
        assert counts(f"{path}?since=all") == (1, 1, 2, 0)
        assert counts(f"{path}?since={times.now() - timedelta(days=4):%Y-%m-%dT%H:%M}") == (1, 1, 2, 0)
        assert counts(f"{path}?since={times.now() + timedelta(days=1):%Y-%m-%dT%H:%M}Z") == (1, 0, 0, 0)
        assert counts(f"{path}?since=nonsense") == counts(f"{path}?since=9999-99-99") == (1, 0, 1, 0)
        assert counts(f"{path}?since=0001-01-01T00:00%2B14:00") == (1, 0, 1, 0)


@pytest.mark.parametrize("scope", ["agent", "kind", "downstream"])
@pytest.mark.parametrize("which", ["unsent", "maybe", "landed"])
def test_the_lists_go_on_and_cost_the_same(scope: str, which: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    make = {"unsent": scenes.recorded, "maybe": scenes.unknown, "landed": scenes.landed}[which]
    client, _ = log_in()
    path = f"/{scope}/{ {'agent': agent, 'kind': kind, 'downstream': kind.downstream}[scope].name }/?show={which}"
    monkeypatch.setattr(did.paging, "PER_PAGE", 3)
    monkeypatch.setattr(did.paging.cut, "__kwdefaults__", {"per_page": 3})

    def get(path: str) -> tuple[Any, int]:
        with CaptureQueriesContext(connection) as queries:
            response = client.get(path)
        assert response.status_code == 200
        return response, len(queries)

    made = [make(kind, agent, subject="order-0")]
    few = get(path)[1]
    made += [make(kind, agent, subject=f"order-{number}") for number in range(1, 7)]
    wanted = [one.subject for one in made]
    wanted = wanted if which == "unsent" else wanted[::-1]
    seen: list[str] = []
    after = ""
    for _ in range(3):
        response, cost = get(f"{path}&after={after}")
        assert cost == few
        seen += rows_of(response)
        after = response.context["page"].following
    assert (seen, after) == (wanted, "")
    assert rows_of(get(f"{path}&after=nonsense")[0]) == wanted[:3]


def test_more_than_can_be_summed_is_said(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    monkeypatch.setattr(did, "MOST_SUMMED", 2)
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    client, _ = log_in()
    for scope, name in (("agent", agent.name), ("kind", kind.name)):
        page = main_of(client.get(f"/{scope}/{name}/"))
        assert "Not all of it is summed." not in page
    for number in range(4):
        clock.ahead = timedelta(minutes=number - 10)
        scenes.landed(kind, agent, amount_minor=100)
    clock.ahead = timedelta(0)
    for scope, name in (("agent", agent.name), ("kind", kind.name)):
        response = client.get(f"/{scope}/{name}/")
        assert "Not all of it is summed." in main_of(response)
        assert "more than 2 in this time" in main_of(response)
        # Those that are summed, and the one that they are counted from.
        assert numbers(response)["landed"] == [("Refund", "EUR", 3, 300, {"EUR": 300})]


def test_amounts_that_somebody_made_huge_are_summed_all_the_same() -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    huge = 9_000_000_000_000_000_000
    for _ in range(2):
        scenes.recorded(kind, agent, amount_minor=huge + 7)
    client, _ = log_in()
    found = numbers(client.get(f"/agent/{agent.name}/"))
    assert found["unsent"][0][3] == 2 * huge + 14


def test_intents_without_an_amount_count_without_a_sum() -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    scenes.recorded(kind, agent, amount_minor=None)
    client, _ = log_in()
    assert numbers(client.get(f"/agent/{agent.name}/"))["unsent"] == [("Refund", "", 1, None, {})]


def test_each_unsent_row_says_what_comes_next() -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    later = times.now() + timedelta(hours=2)
    scenes.recorded(kind, agent)
    factories.make_intent(kind, agent, next_attempt_at=later)
    factories.make_intent(kind, agent, executor="caller")
    factories.make_intent(kind, agent, to=Status.HELD, approve_before=later)
    client, _ = log_in()
    page = main_of(client.get(f"/agent/{agent.name}/"))
    for words in ("sent at any moment", "its caller may send it", "waits for approval until"):
        assert words in page
    Agent.objects.filter(pk=agent.pk).update(paused=True, pause_reason="x")
    page = main_of(client.get(f"/agent/{agent.name}/"))
    assert "sent at any moment" not in page
    assert page.count("not sent while paused") == 3


def test_what_landed_is_exported_for_a_spreadsheet_that_runs_nothing() -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    scenes.landed(kind, agent, subject="=1+1", amount_minor=5_000, settled=4_850, external_id="@SUM(A1)")
    scenes.landed(kind, agent, subject="-2", external_id="\tx")
    scenes.unknown(kind, agent, subject="+3")
    client, _ = log_in("auditor")
    response = client.get(f"/agent/{agent.name}/did.csv")
    assert response.headers["Content-Type"].startswith("text/csv")
    assert f"agent-{agent.name}-landed-" in response.headers["Content-Disposition"]
    rows = list(csv.DictReader(io.StringIO("".join(part.decode() for part in response))))
    assert [(row["order"], row["external id"]) for row in rows] == [("'-2", "'\tx"), ("'=1+1", "'@SUM(A1)")]
    assert (rows[1]["amount"], rows[1]["settled amount"], rows[1]["currency"]) == ("50.00", "48.50", "EUR")
    assert rows[1]["status"] == "confirmed"
    response = client.get(f"/agent/{agent.name}/did.csv?show=maybe")
    assert [row["order"] for row in csv.DictReader(io.StringIO("".join(part.decode() for part in response)))] == [
        "'+3"
    ]


def test_who_has_no_role_sees_nothing_and_what_is_not_there_is_not_found(client: Any) -> None:
    agent = factories.make_agent()
    for path in (f"/agent/{agent.name}/", f"/agent/{agent.name}/did.csv"):
        assert client.get(path).status_code == 302
    auditor, _ = log_in("auditor")
    for path in ("/agent/nobody/", "/agent/nobody/did.csv", "/world/x/", f"/kind/{agent.name}/", "/agent/A/"):
        assert auditor.get(path).status_code == 404
    assert auditor.post(f"/agent/{agent.name}/").status_code == 405


def test_auditors_and_reviewers_get_no_button_that_is_not_theirs() -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    scenes.recorded(kind, agent)
    for role, cancels, pauses in (("auditor", 0, 0), ("reviewer", 1, 0), ("supervisor", 1, 1)):
        client, _ = log_in(role)
        page = main_of(client.get(f"/agent/{agent.name}/"))
        assert page.count("Cancel all 1…") == cancels
        assert page.count('action="/pauses/pause/"') == pauses


def test_text_of_agents_stays_text() -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind, title="<img src=x onerror=alert(1)>")
    scenes.recorded(kind, agent, subject="<script>alert(1)</script>\u202e")
    client, _ = log_in()
    page = main_of(client.get(f"/agent/{agent.name}/"))
    assert "<script>alert" not in page
    assert "<img" not in page
    assert "\u202e</code>" not in page
    assert text_of(client.get(f"/agent/{agent.name}/?since=%3Cscript%3E&show=%22%3E")).count("<script>") == 0


def test_a_replay_that_waits_is_no_unsent_one() -> None:
    """Its key may have been carried out already: it is listed apart, and can't be cancelled from here."""
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    intent = scenes.unknown(kind, agent)
    Intent.objects.filter(pk=intent.pk).update(next_attempt_at=times.now())
    client, _ = log_in()
    response = client.get(f"/agent/{agent.name}/?show=maybe")
    assert numbers(response)["unsent"] == []
    assert "sent again, same key," in main_of(response)
