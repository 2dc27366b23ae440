"""Starts the servers that the tests run against, before Django reads its settings.

Loaded with `-p tests.plugin` (pyproject.toml), because a conftest comes too late: pytest-django reads the
settings first. Under xdist the controller starts them once; its workers find them through the environment.

    LANDED_TEST_DATABASE   sqlite (default) or postgresql: which of the two the suite runs on
"""

import gc
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from config import children
from tests import template
from tests.demo import SERVERS, expect_users, stop_shared_demo
from tests.servers import PostgreSQL, Redis, memory_folder

ONE_DATABASE = Path(__file__).parent / "one_database.txt"

_started: list[PostgreSQL | Redis] = []
_folders: list[Path] = []
_migrating: list["subprocess.Popen[bytes]"] = []


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests() -> Generator[None, object, object]:
    if SERVERS not in os.environ:
        os.environ[SERVERS] = json.dumps(_start())
    _set_environment(json.loads(os.environ[SERVERS]), _worker_number())
    return (yield)


def pytest_collection_finish(session: pytest.Session) -> None:
    expect_users(Path(json.loads(os.environ[SERVERS])["folder"]), sum(map(_uses_the_demo, session.items)))
    # What is imported and collected stays: the garbage collector need not walk through it again and again.
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)


def pytest_unconfigure() -> None:
    """Also after Ctrl-C and after an error in a conftest."""
    if not _started:
        return
    while _migrating:
        children.stop([_migrating.pop()], grace_s=0)
    for folder in _folders:
        stop_shared_demo(folder)
    while _started:
        _started.pop().stop()
    while _folders:
        shutil.rmtree(_folders.pop(), ignore_errors=True)
    os.environ.pop(SERVERS, None)


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "either_database: the database is not the point, so one of them is enough")
    config.addinivalue_line("markers", "alone: no other test may use the shared demo meanwhile")


def pytest_report_header() -> str:
    return f"database: {os.environ.get('LANDED_TEST_DATABASE', 'sqlite')}"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--only-database",
        action="store_true",
        help="leave out what reaches no database, what opens a browser, and what tests/one_database.txt names:"
        " `make test` has run it on the other one",
    )


# Whoever asks for one of these reaches the database, itself or through a process.
_REACHES = frozenset({"db", "transactional_db", "database_url", "demo", "live", "spawn", "django_db_setup"})


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # First those that wait most, for a demo that then need not go on.
    items.sort(key=_uses_the_demo, reverse=True)
    if not config.getoption("--only-database"):
        return
    enough = on_one_database()
    again = [item for item in items if asks_a_database(item) and enough.isdisjoint(_names(item.nodeid))]
    kept = set(again)
    if left_out := [item for item in items if item not in kept]:
        config.hook.pytest_deselected(items=left_out)
        items[:] = again


def _uses_the_demo(item: pytest.Item) -> bool:
    return "demo" in getattr(item, "fixturenames", ())


def on_one_database() -> frozenset[str]:
    """Tests, or functions with all their parameters, that one database is enough for; see tests/statements.py."""
    return frozenset(line for line in ONE_DATABASE.read_text().splitlines() if not line.startswith("#"))


def _names(nodeid: str) -> tuple[str, str]:
    return nodeid, function_of(nodeid)


def function_of(nodeid: str) -> str:
    return nodeid.partition("[")[0]


def asks_a_database(item: pytest.Item) -> bool:
    """Whether the other one might answer differently."""
    return _reaches_database(item) and not _opens_a_browser(item)


def _reaches_database(item: pytest.Item) -> bool:
    if item.get_closest_marker("either_database") is not None:
        return False
    wanted = set(getattr(item, "fixturenames", ()))
    return bool(wanted & _REACHES) or item.get_closest_marker("django_db") is not None


def _opens_a_browser(item: pytest.Item) -> bool:
    """Whether Chromium comes into it: what its pages ask of the database, tests with Django's client ask as well, in
    a tenth of the time."""
    fixtures: dict[str, Any] = getattr(getattr(item, "_fixtureinfo", None), "name2fixturedefs", {})
    wanted, seen = list(getattr(item, "_fixtureinfo").argnames), set[str]()  # noqa: B009  pytest types it nowhere
    while wanted:
        name = wanted.pop()
        if name in seen or name not in fixtures:
            continue
        seen.add(name)
        definition = fixtures[name][-1]
        if name == "browser" and definition.func.__module__.startswith("pytest_playwright"):
            return True
        wanted += definition.argnames
    return False


def _worker_number() -> int:
    """0 without xdist, then 1, 2, …"""
    name = os.environ.get("PYTEST_XDIST_WORKER", "")
    return int(name.removeprefix("gw")) + 1 if name else 0


def _start() -> dict[str, str]:
    folder = Path(tempfile.mkdtemp(prefix="landed-test-", dir=memory_folder()))
    _folders.append(folder)
    redis = Redis(folder)
    _started.append(redis)
    found = {"folder": str(folder), "redis": str(redis.socket), "database": ""}
    chosen = os.environ.setdefault("LANDED_TEST_DATABASE", "sqlite")
    if chosen == "postgresql":
        postgresql = PostgreSQL()
        _started.append(postgresql)
        found["database"] = postgresql.url_of("landed")
    elif chosen != "sqlite":
        raise pytest.UsageError(f"LANDED_TEST_DATABASE={chosen}: sqlite or postgresql")
    _migrating.append(template.begin(folder, found["database"]))
    return found


def _set_environment(found: dict[str, str], number: int) -> None:
    folder = Path(found["folder"]) / f"w{number}"
    folder.mkdir(exist_ok=True)
    os.environ.update(
        LANDED_MODE="test",
        LANDED_DATA=str(folder),
        DATABASE_URL=found["database"] or f"sqlite:///{folder / 'landed.sqlite3'}",
        REDIS_URL=f"unix://{found['redis']}?db={number}",
        PYTEST_DEBUG_TEMPROOT=found["folder"],  # tmp_path: as fast, and gone with the rest
        PYTHONPATH=os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH")])),
    )
    for name in ("SECRET_KEY", "ALLOWED_HOSTS", "DJANGO_SETTINGS_MODULE"):
        os.environ.pop(name, None)
