"""The zygote: one per process of the suite, on a copy of its database."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection, connections

from tests.demo import SERVERS


class Zygote:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    def run(self, act: str, **options: Any) -> dict[str, Any]:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"act": act} | options) + "\n")
        self.process.stdin.flush()
        return dict(self.read())

    def read(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "the zygote is dead"
        return json.loads(line)


@pytest.fixture(scope="session")
def zygote(
    django_db_setup: None, django_db_blocker: Any, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Zygote]:
    folder = tmp_path_factory.mktemp("killed")
    with django_db_blocker.unblock():
        url = _copy_of_the_database(folder)
    environment = os.environ | {"DATABASE_URL": url, "LANDED_DATA": str(folder), "LOG_LEVEL": "CRITICAL"}
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.kill_points.zygote"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        found = Zygote(process)
        assert found.read() == "ready"
        yield found
    finally:
        process.stdin.close()  # it ends its own
        process.wait(timeout=10)
        with django_db_blocker.unblock():
            _drop()


def _copy_of_the_database(folder: Path) -> str:
    """Migrated and empty, and nobody else's."""
    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        file = folder / "killed.sqlite3"
        with sqlite3.connect(name) as source, sqlite3.connect(f"{file}.empty") as copy:
            source.backup(copy)
        source.close()
        copy.close()
        return f"sqlite:///{file}"
    mine = f"{name}_killed"
    _outside(f'DROP DATABASE IF EXISTS "{mine}"', f'CREATE DATABASE "{mine}" TEMPLATE "{name}"')
    return _url_of(mine)


def _drop() -> None:
    if connection.vendor == "postgresql":
        _outside(f'DROP DATABASE IF EXISTS "{connection.settings_dict["NAME"]}_killed" WITH (FORCE)')


def _outside(*statements: str) -> None:
    connections.close_all()
    with psycopg.connect(_url_of("postgres"), autocommit=True) as found:
        for statement in statements:
            found.execute(statement.encode())


def _url_of(database: str) -> str:
    found: str = json.loads(os.environ[SERVERS])["database"]
    return found.replace("/landed?", f"/{database}?", 1)
