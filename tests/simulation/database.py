"""A real SQLite database in memory that is put back as it was at the beginning by one ROLLBACK.

Every run is one transaction that is never committed, and the product's own transactions are savepoints in it: to
begin one, to commit it and to undo it mean the same to whoever does so, and nobody else is connected. What differs is
told by `unresolved`. (Copying the database anew for every run had SQLite prepare every statement anew, which was a
quarter of the time.)
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, cast

from django.db import connections
from django.db.backends.sqlite3.base import DatabaseWrapper, SQLiteCursorWrapper
from django.db.backends.sqlite3.operations import DatabaseOperations

from tests.simulation.tasks import pause

_WRITES = ("INSERT", "UPDATE", "DELETE")


# So many statements stay prepared; the driver's own 128 are fewer than a run has.
_PREPARED = 2_000


class _Cursor(SQLiteCursorWrapper):
    @staticmethod
    @lru_cache(_PREPARED)
    def _with_question_marks(query: str) -> str:
        return cast(str, SQLiteCursorWrapper.convert_query(None, query))

    def convert_query(self, query: str, *, param_names: Any = None) -> str:
        if param_names:
            return cast(str, super().convert_query(query, param_names=param_names))
        return self._with_question_marks(query)


class _Operations(DatabaseOperations):
    compiler_module = "tests.simulation.compiling"


class Paused(DatabaseWrapper):
    """Pauses at every point at which something else can come between: where transactions begin and where they have
    ended, and before each statement that writes without one."""

    ops_class = _Operations
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

    def create_cursor(self, name: str | None = None) -> SQLiteCursorWrapper:
        return self.connection.cursor(factory=_Cursor)

    # A transaction of the product's is a savepoint in the run's.

    def _start_transaction_under_autocommit(self) -> None:
        self.cursor().execute("SAVEPOINT transaction_of_the_product")

    def _commit(self) -> None:
        with self.wrap_database_errors:
            self.connection.execute("RELEASE transaction_of_the_product")

    def _rollback(self) -> None:
        with self.wrap_database_errors:
            self.connection.execute("ROLLBACK TO transaction_of_the_product")
            self.connection.execute("RELEASE transaction_of_the_product")

    def _set_autocommit(self, autocommit: bool) -> None:
        """The driver never commits by itself."""
        with self.wrap_database_errors:
            if self.connection.isolation_level is not None:
                self.connection.isolation_level = None


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

    def __init__(self) -> None:
        raw().execute("BEGIN")

    def restore(self) -> None:
        raw().execute("ROLLBACK")
        raw().execute("BEGIN")


def unresolved() -> list[str]:
    """Rows that refer to others that are not there, of whatever was written. SQLite looks for them when the outermost
    transaction is committed, which never happens here."""
    return [
        f"{table} {row} refers to a {parent}" for table, row, parent, _ in raw().execute("PRAGMA foreign_key_check")
    ]


def is_in_memory() -> bool:
    """Whether whoever asks is inside `in_memory`."""
    return isinstance(connections["default"], Paused)


def raw() -> sqlite3.Connection:
    """The driver's own connection, past Django: for looking at the database cheaply."""
    found = connections["default"].connection
    assert isinstance(found, sqlite3.Connection)
    return found


@contextmanager
def in_memory() -> Iterator[None]:
    """Inside, Django's default database is a copy in memory of what it is outside."""
    outside = connections["default"]
    if is_in_memory():
        raise RuntimeError(
            "one inside the other: SQLite would wait for ever for the end of what the outer one writes"
        )
    outside.ensure_connection()
    options = outside.settings_dict["OPTIONS"] | {"cached_statements": _PREPARED}
    inside = Paused(outside.settings_dict | {"NAME": ":memory:", "OPTIONS": options}, "default")
    connections["default"] = inside
    try:
        inside.ensure_connection()
        outside.connection.backup(inside.connection)
        with inside.execute_wrapper(_pause_at_writes):
            yield
    finally:
        connections["default"] = outside
        inside.connection.close()
