"""A real SQLite database in memory that is put back as it was at the beginning, byte for byte, in a millisecond."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper

from tests.simulation.tasks import pause

_WRITES = ("INSERT", "UPDATE", "DELETE")


class Paused(DatabaseWrapper):
    """Pauses at every point at which something else can come between: where transactions begin and where they have
    ended, and before each statement that writes without one."""

    _ended = False

    def set_autocommit(self, autocommit: bool, **options: Any) -> None:
        if not autocommit:
            pause("before a transaction")
        super().set_autocommit(autocommit, **options)
        if autocommit and self._ended:
            self._ended = False
            pause("committed")

    def commit(self) -> None:
        super().commit()
        self._ended = True


def _pause_at_writes(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
    alone = not context["connection"].in_atomic_block and sql.lstrip()[:6].upper() in _WRITES
    if alone:
        pause("before a write")
    found = execute(sql, params, many, context)
    if alone:
        pause("written")
    return found


class Template:
    """The database as every run finds it: migrated, with downstreams, kinds, agents and people."""

    def __init__(self, raw: sqlite3.Connection) -> None:
        self._kept = sqlite3.connect(":memory:")
        raw.backup(self._kept)

    def restore(self) -> None:
        raw().rollback()
        self._kept.backup(raw())


def raw() -> sqlite3.Connection:
    """The driver's own connection, past Django: for looking at the database cheaply."""
    found = connections["default"].connection
    assert isinstance(found, sqlite3.Connection)
    return found


@contextmanager
def in_memory() -> Iterator[None]:
    """Inside, Django's default database is a copy in memory of what it is outside."""
    outside = connections["default"]
    outside.ensure_connection()
    inside = Paused(outside.settings_dict | {"NAME": ":memory:"}, "default")
    connections["default"] = inside
    try:
        inside.ensure_connection()
        outside.connection.backup(inside.connection)
        with inside.execute_wrapper(_pause_at_writes):
            yield
    finally:
        connections["default"] = outside
        inside.connection.close()
