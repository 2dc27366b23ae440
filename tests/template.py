"""One migrated, empty database per run, which every process of the run copies: `migrate` takes seconds, a copy none.

Made beside everything else that a run begins with. What has to see `migrate` at work makes a database of its own.
"""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import psycopg

from config import children

_NAME, _DONE, _FAILED = "template", "template.done", "template.failed"
_LONGEST_S = 120.0


def begin(folder: Path, database: str) -> "subprocess.Popen[bytes]":
    """Starts `migrate`. `database`: the PostgreSQL URL of the run, "" on SQLite."""
    url = create(database, _NAME) if database else f"sqlite:///{folder / _NAME}.sqlite3"
    env = os.environ | {
        "LANDED_MODE": "test",
        "LANDED_DATA": str(folder),
        "DATABASE_URL": url,
        "SECRET_KEY": "x" * 60,
    }
    env["DJANGO_SETTINGS_MODULE"] = "config.settings"
    code = f"from tests import template; template.migrate({str(folder)!r})"
    log = (folder / "template.log").open("wb")
    return subprocess.Popen([sys.executable, "-c", code], cwd=children.ROOT, env=env, stdout=log, stderr=log)


def migrate(folder: str) -> None:
    """What the process of its own does; whoever waits sees how it ended."""
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(["manage.py", "migrate", "--verbosity", "0"])
    except BaseException:
        (Path(folder) / _FAILED).touch()
        raise
    (Path(folder) / _DONE).touch()


def copy(folder: Path, database: str, to: str) -> None:
    """Waits for the template and copies it: to the file `to`, or on PostgreSQL to the new database `to`."""
    _wait(folder)
    if database:
        create(database, to, template=_NAME)
    else:
        shutil.copyfile(folder / f"{_NAME}.sqlite3", to)


def _wait(folder: Path) -> None:
    until = time.monotonic() + _LONGEST_S
    while not (folder / _DONE).exists():
        if (folder / _FAILED).exists():
            raise RuntimeError(f"the database can't be migrated:\n{(folder / 'template.log').read_text()}")
        if time.monotonic() > until:
            raise RuntimeError(f"no migrated database came:\n{(folder / 'template.log').read_text()}")
        time.sleep(0.05)


def create(database: str, name: str, *, template: str = "template1") -> str:
    """Makes a PostgreSQL database beside the one at the URL `database`; returns its URL."""
    with psycopg.connect(url_of(database, "postgres"), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"')  # type: ignore[call-overload]
    return url_of(database, name)


def url_of(database: str, name: str) -> str:
    return database.replace("/landed?", f"/{name}?", 1)
