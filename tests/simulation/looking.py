"""The database as rows, read past Django: looked at after every step, so it has to cost next to nothing."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from tests.simulation.database import raw

Row = dict[str, Any]


def rows(sql: str, *params: Any) -> list[Row]:
    """`params`: in order, or one mapping by name."""
    by_name = len(params) == 1 and isinstance(params[0], dict)
    cursor = raw().execute(sql, params[0] if by_name else params)
    names = [column[0] for column in cursor.description]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def when(value: str | datetime | None) -> datetime | None:
    """A time as the driver gives it: in columns of its own Django's converters have read it already."""
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return None if found is None else found.replace(tzinfo=UTC)


@dataclass(frozen=True)
class Seen:
    """What there is after a step. `news` and `checks`: the transitions and looks since the step before; `before`:
    intents as they were."""

    intents: dict[str, Row]
    attempts: dict[str, list[Row]]
    news: list[Row]
    checks: list[Row]
    before: dict[str, Row]


class Eye:
    """Looks only when something was written since it looked last."""

    def __init__(self) -> None:
        self._changes, self.intents = -1, dict[str, Row]()
        self._last = {"actions_transition": 0, "reconciliation_check": 0}

    def look(self) -> Seen | None:
        connection: sqlite3.Connection = raw()
        if connection.total_changes == self._changes:
            return None
        self._changes = connection.total_changes
        before, self.intents = self.intents, {row["id"]: row for row in rows("SELECT * FROM actions_intent")}
        attempts: dict[str, list[Row]] = {pk: [] for pk in self.intents}
        for row in rows("SELECT * FROM actions_attempt ORDER BY id"):
            attempts[row["intent_id"]].append(row)
        news, checks = self._new("actions_transition"), self._new("reconciliation_check")
        return Seen(self.intents, attempts, news, checks, before)

    def _new(self, table: str) -> list[Row]:
        found = rows(f"SELECT * FROM {table} WHERE id > ? ORDER BY id", self._last[table])
        if found:
            self._last[table] = found[-1]["id"]
        return found
