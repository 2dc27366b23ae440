"""What runs once a second, and every page, costs what is open: SQLite goes through no table that holds history.

SQLite plans by what it knows of a table, and uses a partial index only when its condition stands in the query word
for word; so the queries are explained as they are sent, with their parameters, on tables that it has counted.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection

from actions import limits, sweep, times
from actions.models import Agent, Intent
from benchmarks.filling import fill
from reconciliation import entries, ties
from reconciliation import sweep as reconciliation_sweep
from reconciliation.figures import open_cases
from reconciliation.models import MatchRole
from reconciliation.reviews import claiming
from reconciliation.views import comparing
from tests import factories
from tests.ledger.books import confirmed, make_entry
from tests.pages.cases import log_in, make_case, make_held, make_unknown

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.skipif("connection.vendor != 'sqlite'", reason="PostgreSQL reads small tables as it likes"),
]

HISTORY = 5_000


@pytest.fixture
def unknown(db: None) -> Intent:
    """One that is open among thousands that are not."""
    kind = factories.make_kind()
    template = confirmed(kind, request_key="ask-0", external_id="re_0")
    entry = make_entry(kind.downstream, subject=template.subject, key=template.idempotency_key, explain_at=None)
    ties.tie(entry, template, MatchRole.SETTLES, by="checker", now=times.now())
    fill(template, HISTORY)
    make_case(kind)
    make_held(kind)
    return make_unknown(kind)


def pages_of(path: str) -> Callable[[Intent], Any]:
    def get(intent: Intent) -> None:
        client, _ = log_in()
        assert client.get(path.format(intent=intent.pk, kind=intent.kind.name)).status_code == 200

    return get


def limited(intent: Intent) -> None:
    """Everything that can be counted, for the agent that has the history."""
    agent = Agent.objects.earliest("pk")
    every = {"per_day": 1, "per_subject_day": 1}
    agent.limits = {"open": 9, "velocity": {"intents": 9, "minutes": 9}, "amounts": {"EUR": every}}
    agent.limits |= {"kinds": {intent.kind.name: {"open": 9, "amounts": {"EUR": every}}}}
    agent.save()
    assert limits.judge(agent, limits.Asked(intent.kind, intent.family, 1, "EUR"), now=times.now()) is not None
    assert len(limits.left(agent, now=times.now())) == 7


STEPS: dict[str, Callable[[Intent], Any]] = {
    "the sweep of intents": lambda intent: sweep.sweep(),
    "the sweep of cases": lambda intent: reconciliation_sweep.sweep(),
    "what an intent's look compares": entries.about,
    "whether it is known to exist": entries.is_known_to_exist,
    "what its page compares": comparing.entries_for,
    "money at stake": lambda intent: open_cases.at_stake(),
    "the next case": lambda intent: claiming.take_next(person=factories.make_person()),
    "what an agent's limits count": limited,
    "the queue": pages_of("/"),
    "an intent": pages_of("/intents/{intent}/"),
    "intents of a kind": pages_of("/intents/?kind={kind}"),
    "the ledger": pages_of("/ledger/"),
}


# Whole tables, a page at a time: what is listed is all there is, so that every row read is a row shown.
LISTS = {"intents of a kind", "the ledger"}


@pytest.mark.parametrize("name", STEPS)
def test_nothing_goes_through_what_is_over(unknown: Intent, name: str) -> None:
    found: list[tuple[str, Any]] = []

    def note(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        found.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(note):
        STEPS[name](unknown)
    assert found
    for sql, params in found:
        if sql.startswith(("SELECT", "UPDATE")):
            steps = through_history(sql, params)
            assert not steps or (name in LISTS and is_a_page(sql, params)), (steps, sql)


def is_a_page(sql: str, params: Any) -> bool:
    """Read in the order of an index, and no further than its rows go."""
    return bool(re.search(r"LIMIT \d+$", sql)) and not any("TEMP B-TREE" in step for step in plan(sql, params))


def plan(sql: str, params: Any) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        return [str(row[3]) for row in cursor.fetchall()]


def through_history(sql: str, params: Any) -> list[str]:
    """The steps of a query's plan that read a large table from end to end, or all of one downstream's or kind's."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%% WHERE %%'", [])
        partial = {name for (name,) in cursor.fetchall()}
    large = _large(sql)
    return [step for step in plan(sql, params) if _reads_all(step, large, partial)]


def _large(sql: str) -> set[str]:
    """The large tables of a query, by the names that it gives them."""
    tables = (
        "actions_intent",
        "actions_attempt",
        "actions_transition",
        "actions_event",
        "actions_eventdelivery",
        "reconciliation_ledgerentry",
        "reconciliation_match",
    )
    aliases = re.findall(rf'"({"|".join(tables)})" (?:AS )?"?(\w+)"?', sql)
    return {*tables, *(alias for _, alias in aliases)}


def _reads_all(step: str, large: set[str], partial: set[str]) -> bool:
    whole = re.fullmatch(r"SCAN (\w+)(?: USING (?:COVERING )?INDEX (\w+))?", step)
    if whole:
        return whole[1] in large and whole[2] not in partial
    of_all = re.fullmatch(r"SEARCH (\w+) USING INDEX (\w+) \((?:downstream_id|kind_id|status)=\?\)", step)
    return bool(of_all and of_all[1] in large and of_all[2] not in partial)
