"""Reading the whole database as it is at one moment, without being in anybody's way."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import connection, transaction


@contextmanager
def one_moment() -> Iterator[None]:
    """What is read inside is all of one moment, however long it takes, and nobody waits for it.

    PostgreSQL: REPEATABLE READ, read only. SQLite: a read transaction, which in WAL mode holds up no writer (our own
    transactions are immediate ones, and would). Inside somebody's transaction it is that one that is read in.
    Meanwhile PostgreSQL keeps rows that are out of date, and SQLite its write-ahead log grows.
    """
    if connection.in_atomic_block:
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield
    else:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")
