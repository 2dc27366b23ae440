"""`manage.py demo` as a black box."""

import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from config import children
from tests.plugin import SERVERS


@dataclass
class Demo:
    """What `--print-json` said, and the process behind it."""

    process: "subprocess.Popen[bytes]"
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

    def stop(self, *, within_s: float = 8.0) -> int:
        """SIGTERM, and the exit code. Fails when something is left after `within_s` seconds."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            children.stop([self.process], grace_s=0)
            raise


def start_demo(data: Path, *arguments: str, database_url: str | None = None, within_s: float = 60) -> Demo:
    """Starts the demo in the folder `data` and waits for its line. Without `database_url`: on SQLite."""
    # The demo makes its own settings; what the test run lives on must not leak in.
    ours = ("LANDED_MODE", "LANDED_DATA", "DATABASE_URL", "REDIS_URL", SERVERS, "DJANGO_SETTINGS_MODULE")
    env = {name: value for name, value in os.environ.items() if name not in ours}
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
    demo = Demo(process, data)
    timer = threading.Timer(within_s, process.kill)
    timer.start()
    assert process.stdout is not None
    line = process.stdout.readline()
    timer.cancel()
    if not line:
        process.kill()
        raise RuntimeError(f"the demo did not start:\n{(data / 'stderr.log').read_text()[-4000:]}")
    demo.facts = json.loads(line)
    return demo


def create_database(name: str) -> str | None:
    """A fresh database of the kind under test; None on SQLite, where the demo makes its own file."""
    url: str = json.loads(os.environ[SERVERS])["database"]
    if not url:
        return None
    with psycopg.connect(url.replace("/landed?", "/postgres?", 1), autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload]
    return url.replace("/landed?", f"/{name}?", 1)
