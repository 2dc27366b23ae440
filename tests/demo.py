"""`manage.py demo` as a black box."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config import children
from tests import template
from tests.servers import is_alive

SERVERS = "LANDED_TEST_SERVERS"  # JSON: {"folder", "database", "redis"}; set by whoever started them


@dataclass
class Demo:
    """What `--print-json` said."""

    data: Path
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def base_url(self) -> str:
        return str(self.facts["base_url"])

    @property
    def sandbox_url(self) -> str:
        return str(self.facts["sandbox_url"])

    @property
    def agent_token(self) -> str:
        return str(self.facts["agent_token"])

    def login(self, role: str, number: int = 0) -> dict[str, str]:
        """The `number`-th login of that role: {"username", "password", "role"}."""
        found: list[dict[str, str]] = [one for one in self.facts["logins"] if one["role"] == role]
        return found[number]


def stop_demo(pid: int, *, within_s: float = 8.0) -> bool:
    """SIGTERM; whether it was gone in time. Afterwards it is gone in any case."""
    if not is_alive(pid):
        return True
    os.kill(pid, signal.SIGTERM)
    in_time = children.wait_until(lambda: not is_alive(pid), within_s=within_s)
    if not in_time:
        os.killpg(pid, signal.SIGKILL)
    return in_time


@contextmanager
def shared_demo(folder: Path, *, alone: bool = False) -> Iterator[Demo]:
    """The one demo of this test run: whoever comes first starts it, and it ends after the last. `alone`: nobody else
    uses it meanwhile."""
    with (folder / "demo.users").open("w") as users:
        fcntl.flock(users, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        yield _share(folder)
    with _locked(folder):
        left = folder / "demo.left"
        left.write_text(str(int(left.read_text()) - 1))
        if left.read_text() == "0":
            stop_shared_demo(folder)


def expect_users(folder: Path, number: int) -> None:
    """So many tests of this run will ask for the demo. Each process of the run says so, and all say the same."""
    with _locked(folder), suppress(FileExistsError), (folder / "demo.left").open("x") as left:
        left.write(str(number))


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "demo.lock").open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _share(folder: Path) -> Demo:
    """Its processes outlive this one."""
    facts, data = folder / "demo.json", folder / "demo"
    with _locked(folder):
        if not facts.exists():
            data.mkdir()
            url = _migrated_database("demo", folder, data)
            # Two of each, because one of each hides every race.
            found = start_demo(data, "--workers-rq", "2", "--clocks", "2", database_url=url)
            facts.write_text(json.dumps(found.facts))
    return Demo(data, json.loads(facts.read_text()))


def stop_shared_demo(folder: Path) -> None:
    facts = folder / "demo.json"
    if facts.exists():
        stop_demo(json.loads(facts.read_text())["pid"])


def start_demo(data: Path, *arguments: str, database_url: str | None = None, within_s: float = 60) -> Demo:
    """Starts the demo in the folder `data` and waits for its line. Without `database_url`: on SQLite."""
    # The demo makes its own settings; what the test run lives on must not leak in.
    ours = ("LANDED_MODE", "LANDED_DATA", "DATABASE_URL", "REDIS_URL", SERVERS, "DJANGO_SETTINGS_MODULE")
    env = {name: value for name, value in os.environ.items() if name not in ours}
    # What is decided takes effect at once, or every test that decides would wait for the time to undo it.
    env.setdefault("LANDED_UNDO_S", "0")
    # A demo for people looks more often; what tests wait for may take a second longer, and all the time it costs.
    env.setdefault("LANDED_CLOCK_S", "2")
    if database_url:
        env["DATABASE_URL"] = database_url
    log = (data / "stderr.log").open("wb")
    process = subprocess.Popen(
        [
            sys.executable,
            "manage.py",
            "demo",
            "--print-json",
            "--no-traffic",
            "--data",
            str(data),
            *arguments,
        ],
        cwd=children.ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )
    timer = threading.Timer(within_s, process.kill)
    timer.start()
    assert process.stdout is not None
    line = process.stdout.readline()
    timer.cancel()
    if not line:
        process.kill()
        raise RuntimeError(f"the demo did not start:\n{(data / 'stderr.log').read_text()[-4000:]}")
    return Demo(data, json.loads(line))


def _migrated_database(name: str, folder: Path, data: Path) -> str | None:
    """The same with the run's template in it."""
    url: str = json.loads(os.environ[SERVERS])["database"]
    template.copy(folder, url, name if url else str(data / "landed.sqlite3"))
    return template.url_of(url, name) if url else None


def create_database(name: str) -> str | None:
    """A fresh database of the kind under test; None on SQLite, where the demo makes its own file."""
    url: str = json.loads(os.environ[SERVERS])["database"]
    return template.create(url, name) if url else None
