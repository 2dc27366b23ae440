"""What every test can ask for. The servers themselves come from tests/plugin.py."""

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from config import children
from tests import flushing, static_files, template
from tests.browsing import CHROMIUM_FLAGS, find_chromium
from tests.demo import SERVERS, Demo, shared_demo
from tests.sandbox.sandbox_client import Sandbox, start_sandbox
from tests.servers import Redis

flushing.install()
static_files.install()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The data folder of this (xdist) process."""
    return Path(os.environ["LANDED_DATA"])


@pytest.fixture(scope="session")
def django_db_keepdb() -> bool:
    """The database is there before Django asks for it, and goes with the run's servers and folder."""
    return True


@pytest.fixture(scope="session")
def django_db_modify_db_settings(data_dir: Path, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """This process's own copy of the migrated database. On SQLite a file, never memory, so that threads and processes
    share what production would."""
    from django.conf import settings

    servers = json.loads(os.environ[SERVERS])
    test = settings.DATABASES["default"].setdefault("TEST", {})
    if servers["database"]:
        # With the parallel suffix of this process in it.
        name = test.get("NAME") or f"test_{settings.DATABASES['default']['NAME']}"
    else:
        name = test["NAME"] = str(data_dir / "test.sqlite3")
    template.copy(Path(servers["folder"]), servers["database"], name)


@pytest.fixture
def database_url(db: None) -> str:
    """The URL of this test's database, for another process. That one sees committed rows only."""
    from django.db import connection

    name = str(connection.settings_dict["NAME"])
    if connection.vendor == "sqlite":
        return f"sqlite:///{name}"
    return template.url_of(json.loads(os.environ[SERVERS])["database"], name)


@pytest.fixture(scope="session")
def _rings() -> Iterator["redis.Redis[bytes]"]:
    with redis.Redis.from_url(os.environ["REDIS_URL"], socket_timeout=5) as client:
        yield client


@pytest.fixture(autouse=True)
def _no_old_rings(_rings: "redis.Redis[bytes]") -> None:
    """Every test begins with an empty Redis (a database number of this process's own) that is taken for well."""
    from actions import jobs

    _rings.flushdb()
    jobs._next_try = 0.0


@pytest.fixture
def own_redis(tmp_path: Path) -> Iterator[Redis]:
    """A redis-server of this test's own, to kill or to freeze. `settings.REDIS_URL` is not changed."""
    server = Redis(tmp_path)
    yield server
    server.stop()


@pytest.fixture(scope="session")
def _sandbox_process(data_dir: Path) -> Iterator[Sandbox]:
    found = start_sandbox("--port", "0", "--books", str(data_dir / "books.sqlite3"))
    yield found
    found.process.kill()
    found.process.wait()


@pytest.fixture
def sandbox(_sandbox_process: Sandbox) -> Sandbox:
    """The sandbox payments service, empty and without faults."""
    until = time.monotonic() + 5
    while True:
        try:
            assert _sandbox_process.call("POST", "/_control/reset").status == 200
            return _sandbox_process
        except ConnectionRefusedError:  # a test before this one closed the listener for a while
            if time.monotonic() > until:
                raise
            time.sleep(0.1)


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    """One Chromium per (xdist) process, the one that is installed; pytest-playwright opens contexts in it."""
    chromium = find_chromium()
    if chromium is None and os.environ.get("LANDED_BROWSER") != "required":
        pytest.skip("needs chromium")
    # Playwright's sync API runs an event loop in this thread, which Django takes for an async context.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    return browser_type_launch_args | {"executable_path": chromium, "args": CHROMIUM_FLAGS}


@pytest.fixture(scope="session")
def base_url(live_server: Any) -> str:
    """What a browser's paths are relative to."""
    return str(live_server.url)


@pytest.fixture
def live(live_server: Any) -> str:
    """The base URL of a web server with threads on this test's database (transactional)."""
    return str(live_server.url)


@pytest.fixture
def demo(request: pytest.FixtureRequest) -> Iterator[Demo]:
    """`manage.py demo --no-traffic`: one for the whole run, on a database of its own of the kind under test.

    Other tests use it at the same time: keep to orders of your own, leave the sandbox's settings alone. A test marked
    `alone` waits until no other uses it, and they wait for it.
    """
    folder = Path(json.loads(os.environ[SERVERS])["folder"])
    with shared_demo(folder, alone=request.node.get_closest_marker("alone") is not None) as found:
        yield found


@pytest.fixture
def spawn() -> Iterator[Any]:
    """`config.children.start`, with everything stopped at the end of the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*arguments: Any, **options: Any) -> "subprocess.Popen[bytes]":
        started.append(children.start(*arguments, **options))
        return started[-1]

    yield start
    children.stop(started)
