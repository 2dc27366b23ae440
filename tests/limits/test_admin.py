"""Limits on the agent's page in the admin."""

from typing import Any

import pytest
from django.test import Client

from actions.models import Agent
from tests.admin.conftest import browser_of, errors, page, person, save, url
from tests.factories import make_agent, make_kind, make_person
from tests.limits.limiting import amounts

__all__ = ["page", "person"]
pytestmark = pytest.mark.django_db

CELLS = ("kind", "currency", "per_action", "per_day", "per_subject_day", "open")


def rows(*found: tuple[str, ...], intents: str = "", minutes: str = "") -> dict[str, str]:
    """The table's inputs as a browser sends them; a last, empty row with them."""
    padded = [*found, ()]
    cells = {
        f"limits-{number}-{cell}": (*row, *[""] * 6)[place]
        for number, row in enumerate(padded)
        for place, cell in enumerate(CELLS)
    }
    return cells | {"limits-intents": intents, "limits-minutes": minutes}


def test_they_are_written_in_the_currency_itself_and_history_keeps_who(page: Client, person: Any) -> None:
    kind, agent = make_kind(), make_agent()
    given = rows(
        ("", "EUR", "100.00", "1000", "", "20"),
        ("", "JPY", "", "5000"),
        (kind.name, "KWD", "0.005"),
        (kind.name, "", "", "", "", "3"),
        intents="60",
        minutes="10",
    )
    save(page, agent, **given)
    agent.refresh_from_db()
    assert agent.limits == {
        "open": 20,
        "velocity": {"intents": 60, "minutes": 10},
        "amounts": {"EUR": {"per_action": 10_000, "per_day": 100_000}, "JPY": {"per_day": 5_000}},
        "kinds": {kind.name: {"open": 3, "amounts": {"KWD": {"per_action": 5}}}},
    }
    newest = agent.history.order_by("-history_id").first()  # type: ignore[attr-defined]
    assert (newest.history_user, newest.limits) == (person, agent.limits)
    shown = page.get(url(agent)).content.decode()
    for text in ('value="1000.00"', 'value="5000"', 'value="0.005"', 'value="60"', f'value="{kind.name}" selected'):
        assert text in shown
    save(page, agent, **rows())
    assert Agent.objects.get().limits == {}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (rows(("", "EUR", "1,5")), "Row 1: One action: &#x27;1,5&#x27; is not an amount"),
        (rows(("", "EUR", "1.005")), "more decimals than EUR has"),
        (rows(("", "", "1.00")), "Row 1: An amount needs its currency."),
        (rows(("", "EUR", "1"), ("", "EUR", "2")), "Row 2: There is an earlier row for EUR."),
        (rows(("", "EUR", "2", "1")), "It is above per_day"),
        (rows(("", "", "", "", "", "x")), "open: A whole number"),
        (rows(("", "XXX", "1")), "XXX"),
        (rows(intents="5"), "velocity.minutes: A whole number"),
        (rows(("gone", "EUR", "1")), "kinds.gone: There is no such kind."),
    ],
)
def test_nonsense_is_said_in_the_form_and_nothing_is_saved(
    page: Client, given: dict[str, str], sentence: str
) -> None:
    agent = make_agent(limits={"open": 7})
    response = save(page, agent, **given)
    assert sentence in response.content.decode(), errors(response)
    assert Agent.objects.get().limits == {"open": 7}


def test_what_is_wrong_stays_in_its_input(page: Client) -> None:
    response = save(page, make_agent(), **rows(("", "EUR", "1,5")))
    assert 'value="1,5"' in response.content.decode()


def test_a_form_that_does_not_show_them_leaves_them(page: Client) -> None:
    agent = make_agent(limits=amounts(per_day=5))
    save(page, agent, title="Bot")
    now = Agent.objects.get()
    assert (now.title, now.limits) == ("Bot", amounts(per_day=5))


def test_who_may_not_change_agents_changes_no_limits() -> None:
    agent = make_agent(limits={"open": 1})
    for role in ("supervisor", "auditor"):
        other = browser_of(make_person(role, is_staff=True))
        assert other.post(url(agent), rows()).status_code == 403
    assert Agent.objects.get().limits == {"open": 1}


def test_a_kind_that_limits_name_keeps_its_name(page: Client) -> None:
    kind = make_kind()
    agent = make_agent(kind, limits={"kinds": {kind.name: {"open": 1}}})
    assert agent.name in errors(save(page, kind, name="renamed"))
    kind.refresh_from_db()
    assert kind.name != "renamed"
    Agent.objects.update(limits={})
    save(page, kind, name="renamed")
    kind.refresh_from_db()
    assert kind.name == "renamed"
