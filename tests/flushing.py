"""Emptying the database between transactional tests, past the append-only triggers.

Only here: the application has no way to delete history.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.apps import apps
from django.db import connection, transaction
from django.test import TransactionTestCase

from actions import triggers

# Written by migrate alone; deleting and rewriting them after each test would take longer than the test.
KEPT = frozenset(
    {"django_migrations", "django_content_type", "auth_permission", "auth_group", "auth_group_permissions"}
)


def install() -> None:
    """Makes TransactionTestCase (and so pytest's `transaction=True`) empty the tables our way.

    On PostgreSQL it also keeps the connection, as requests do: a new one is a new process there, which knows no table
    yet. (Kept on SQLite, databases were found malformed. Likely because tests copy the file: closing any handle of it
    drops the process's locks.)
    """
    TransactionTestCase._fixture_teardown = _teardown  # type: ignore[method-assign]
    TransactionTestCase._should_reload_connections = lambda _: connection.vendor == "sqlite"


def _teardown(_: TransactionTestCase) -> None:
    empty_tables()


def empty_tables() -> None:
    """Deletes every row but what `migrate` wrote. Far cheaper than TRUNCATE: most tables are empty."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Neither triggers nor foreign keys are looked at until the end of this transaction.
            # All in one message: most tables are empty, and the way there and back costs more than finding that out.
            deletes = [f'DELETE FROM "{table}"' for table in _tables()]
            cursor.execute("; ".join(["SET LOCAL session_replication_role = replica", *deletes]))
        else:
            cursor.execute("PRAGMA defer_foreign_keys = ON")
            full = full_tables(cursor)
            held = _triggers_against_deleting(cursor, full)
            for name in held:
                cursor.execute(f'DROP TRIGGER "{name}"')
            for table in full:
                cursor.execute(f'DELETE FROM "{table}"')
            for statement in held.values():
                cursor.execute(statement)
            # Whatever a test took away for good.
            if triggers.missing():
                triggers.install()


def full_tables(cursor: Any) -> list[str]:
    """Tables with rows in them: few, of many."""
    each = (f"SELECT '{table}' WHERE EXISTS (SELECT 1 FROM \"{table}\")" for table in _tables())
    cursor.execute(" UNION ALL ".join(each))
    return [name for (name,) in cursor.fetchall()]


def _triggers_against_deleting(cursor: Any, tables: list[str]) -> dict[str, str]:
    """Of these tables, by name, with the statement that made each."""
    cursor.execute("SELECT name, sql, tbl_name FROM sqlite_master WHERE type = 'trigger'")
    return {name: sql for name, sql, table in cursor.fetchall() if table in tables and " BEFORE DELETE " in sql}


@contextmanager
def without_triggers() -> Iterator[None]:
    """Lets a test change what the application never could: to play a forger, or to move a row's time."""
    with transaction.atomic(), connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SET LOCAL session_replication_role = replica")
            yield
        else:
            for name in _trigger_names(cursor):
                cursor.execute(f'DROP TRIGGER "{name}"')
            yield
            triggers.install()


def _tables() -> list[str]:
    return [name for name in connection.introspection.django_table_names(only_existing=True) if name not in KEPT]


def _trigger_names(cursor: Any) -> list[str]:
    cursor.execute("SELECT name FROM sqlite_master WHERE type = 'trigger' AND sql LIKE '%append-only%'")
    return [name for (name,) in cursor.fetchall()]


def rows_kept_after_migrate() -> list[str]:
    """Tables besides KEPT that hold rows right after `migrate`: nothing here would put those back."""
    found = []
    for model in apps.get_models(include_auto_created=True):
        if model._meta.managed and model._meta.db_table not in KEPT and model._base_manager.exists():
            found.append(model._meta.db_table)
    return found
