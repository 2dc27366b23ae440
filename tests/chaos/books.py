"""What Landed's tables and the services' own books say, read directly: in words of their own, not through the
product's models. What is asked must not be what answers."""

import contextlib
import json
import sqlite3
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import dict_row

from sandbox.faults import FAULTS
from tests.chaos.machine import Machine

Row = dict[str, Any]

# May have been sent and nobody was asked about it; or is about to be sent; or waits for nobody.
HANGING = """
SELECT i.id FROM actions_intent i
WHERE i.status NOT IN ('confirmed', 'failed', 'cancelled')
    AND NOT EXISTS (SELECT 1 FROM reconciliation_review r WHERE r.intent_id = i.id AND r.closed_at IS NULL)
"""
# Decided, and its undo window runs.
WAITING = """
SELECT d.id FROM reconciliation_decision d
WHERE d.takes_effect_at IS NOT NULL AND d.choice NOT IN ('effect', 'undo', 'void')
    AND NOT EXISTS (SELECT 1 FROM reconciliation_decision o WHERE o.about_id = d.id)
"""
_INTENTS = """
SELECT i.*, a.name AS agent, k.name AS kind, d.name AS downstream,
    EXISTS (SELECT 1 FROM reconciliation_review r WHERE r.intent_id = i.id AND r.closed_at IS NULL) AS in_review
FROM actions_intent i
JOIN actions_agent a ON a.id = i.agent_id JOIN actions_kind k ON k.id = i.kind_id
JOIN actions_downstream d ON d.id = i.downstream_id
"""


class Tables:
    """Landed's database, for reading."""

    def __init__(self, machine: Machine) -> None:
        self._url = machine.database_url

    def ask(self, query: str) -> list[Row]:
        """Raises what the driver raises while the database is away."""
        with self._open() as (cursor, _):
            cursor.execute(query)
            return [_plain(dict(row)) for row in cursor.fetchall()]

    @contextlib.contextmanager
    def _open(self) -> Iterator[tuple[Any, Any]]:
        if self._url.startswith("sqlite:///"):
            path = self._url.removeprefix("sqlite:///")
            with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as file:
                file.row_factory = sqlite3.Row
                yield file.cursor(), file
        else:
            with psycopg.connect(self._url, row_factory=dict_row, connect_timeout=5) as connection:
                yield connection.cursor(), connection


def _plain(row: Row) -> Row:
    """The same on both databases: ids of intents without hyphens, times as text in UTC, truth as bool."""
    for name, value in row.items():
        if isinstance(value, UUID):
            row[name] = value.hex
        elif isinstance(value, datetime):
            row[name] = value.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S.%f")
        elif name in ("disputed", "guard_waived", "in_review"):
            row[name] = bool(value)
    return row


@dataclass
class Books:
    """Everything at the end. `effects`: by intent, what the service carried out because it was asked over its API."""

    intents: dict[str, Row]
    transitions: dict[str, list[Row]]
    attempts: dict[str, list[Row]]
    checks: dict[str, list[Row]]
    decisions: list[Row]
    matches: list[Row]
    entries: list[Row]
    reviews: list[Row]
    really: dict[tuple[str, str], Row] = field(default_factory=dict)  # (downstream, entry id) -> entry
    effects: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    requests: dict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))
    by_hand: list[Row] = field(default_factory=list)


def read(machine: Machine) -> Books:
    ask = Tables(machine).ask
    found = Books(
        intents={row["id"]: row for row in ask(_INTENTS)},
        transitions=_by_intent(ask("SELECT * FROM actions_transition ORDER BY intent_id, sequence")),
        attempts=_by_intent(ask("SELECT * FROM actions_attempt ORDER BY intent_id, number")),
        checks=_by_intent(ask("SELECT * FROM reconciliation_check ORDER BY intent_id, position")),
        decisions=ask("SELECT * FROM reconciliation_decision ORDER BY id"),
        matches=ask("SELECT * FROM reconciliation_match WHERE released_at IS NULL"),
        entries=ask("""SELECT e.*, d.name AS downstream FROM reconciliation_ledgerentry e
                    JOIN actions_downstream d ON d.id = e.downstream_id"""),
        reviews=ask("SELECT * FROM reconciliation_review"),
    )
    for name in machine.sandboxes:
        _read_service(found, name, machine.books_of(name))
    return found


def _by_intent(rows: list[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["intent_id"]].append(row)
    return found


def _service(path: Path, query: str) -> list[Row]:
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)) as file:
        file.row_factory = sqlite3.Row
        return [dict(row) for row in file.execute(query)]


def _read_service(found: Books, name: str, path: Path) -> None:
    for row in _service(path, "SELECT * FROM entries ORDER BY seq"):
        entry = row | {"downstream": name, "metadata": json.loads(row["metadata"])}
        if entry["fails_at"] is not None and entry["fails_at"] <= time.time():
            entry["status"] = "failed"
        found.really[name, entry["id"]] = entry
        if entry["metadata"].get("by") == "hand":
            found.by_hand.append(entry)
        else:
            found.effects[_intent_of(entry["metadata"])].append(entry)
    for row in _service(path, "SELECT * FROM requests ORDER BY seq"):
        body = json.loads(row["body"])
        metadata = body.get("metadata") if isinstance(body, dict) else None
        found.requests[_intent_of(metadata or {})].append(row | {"downstream": name})


def _intent_of(metadata: dict[str, Any]) -> str:
    return str(metadata.get("intent", "")).replace("-", "")


def faults_hit(machine: Machine) -> Counter[str]:
    """How often each fault of the services really hit a request, as they wrote it down themselves."""
    found: Counter[str] = Counter()
    for name in machine.sandboxes:
        for row in _service(machine.books_of(name), "SELECT fault, COUNT(*) AS many FROM requests GROUP BY 1"):
            if row["fault"]:
                found[row["fault"]] += row["many"]
        for row in _service(machine.books_of(name), "SELECT metadata, type, amount_minor FROM entries"):
            found.update(_sort_by_hand(row))
    return found


def faults_left(machine: Machine) -> Counter[str]:
    """Those of the ledger that are ordered and not used up yet."""
    found: Counter[str] = Counter()
    ledger = {name for name, fault in FAULTS.items() if fault.target == "ledger"}
    for name in machine.sandboxes:
        for row in _service(machine.books_of(name), "SELECT name, SUM(times_left) AS many FROM faults GROUP BY 1"):
            if row["name"] in ledger:
                found[row["name"]] += row["many"]
    return found


def _sort_by_hand(entry: Row) -> list[str]:
    sort = json.loads(entry["metadata"]).get("sort", "")
    return [sort] if sort else []
