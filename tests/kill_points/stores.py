"""The database as each process finds it: kept once per act, and put back before each death."""

from __future__ import annotations

import shutil
import struct
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection, connections

from tests import flushing


def keep(name: str) -> str:
    """What there is now, to be put back by `restore`. The caller has written its last, and ends after this."""
    if connection.vendor == "sqlite":
        connections.close_all()  # the last one writes what is in the log into the file
        shutil.copyfile(_file(), f"{_file()}.{name}")
        return name
    found = _kept_in_postgresql(name)
    connections.close_all()
    return found


def restore(kept: str) -> None:
    """Nobody is connected meanwhile, and nobody is afterwards."""
    connections.close_all()
    if connection.vendor == "sqlite":
        for rest in ("-wal", "-shm"):
            Path(f"{_file()}{rest}").unlink(missing_ok=True)
        shutil.copyfile(f"{_file()}.{kept}", _file())
        return
    with connection.cursor() as cursor:
        _wait_for_the_dead(cursor)
        cursor.execute(kept)
    connections.close_all()


def empty() -> None:
    """As it was migrated."""
    if connection.vendor == "sqlite":
        restore("empty")
    else:
        flushing.empty_tables()


def wait_for_the_dead() -> None:
    """PostgreSQL takes a moment to see that a client is gone; what that one had not committed is gone then, too."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            _wait_for_the_dead(cursor)


def _wait_for_the_dead(cursor: Any) -> None:
    until = time.monotonic() + 10
    while True:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid != pg_backend_pid()"
        )
        if cursor.fetchone()[0] == 0:
            return
        assert time.monotonic() < until, "somebody is still connected"
        time.sleep(0.001)


def _kept_in_postgresql(name: str) -> str:
    """Copies of the tables that hold something, and what puts them back, in one message."""
    with connection.cursor() as cursor:
        cursor.execute(f"DROP SCHEMA IF EXISTS {name} CASCADE; CREATE SCHEMA {name}")
        full = flushing.full_tables(cursor)
        for table in full:
            cursor.execute(f'CREATE TABLE {name}."{table}" AS TABLE public."{table}"')
    # Neither triggers nor foreign keys are looked at: it was sound when it was kept.
    lines = ["SET session_replication_role = replica"]
    lines += [f'DELETE FROM "{table}"' for table in flushing._tables()]
    lines += [f'INSERT INTO "{table}" SELECT * FROM {name}."{table}"' for table in full]
    return "; ".join(lines)


def _file() -> str:
    return str(settings.DATABASES["default"]["NAME"])


def commits_so_far() -> int:
    """How many commits SQLite has written into its log (https://www.sqlite.org/fileformat2.html#the_write_ahead_log):
    the frames that say how large the database is after them."""
    log = Path(f"{_file()}-wal")
    if not log.exists():
        return 0
    with log.open("rb") as found:
        head = found.read(32)
        if len(head) < 32:
            return 0
        page, salts, commits = struct.unpack(">I", head[8:12])[0], head[16:24], 0
        while len(frame := found.read(24)) == 24:
            commits += frame[4:8] != b"\0\0\0\0" and frame[8:16] == salts
            found.seek(page, 1)
    return commits
