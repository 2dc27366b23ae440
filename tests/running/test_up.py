"""`manage.py up` and its parts, as production would run them."""

import subprocess
import sys
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from config import parts
from config.children import ROOT, wait_until
from config.management.commands.demo import _free_port
from tests.demo import create_database
from tests.deploy_check import safe_environment
from tests.servers import is_alive

pytestmark = pytest.mark.either_database


def production(folder: Path, **changes: str) -> dict[str, str]:
    return safe_environment(str(folder)) | {"REDIS_URL": ""} | changes


@pytest.mark.parametrize(
    "arguments",
    [["manage.py", "up"], ["manage.py", "worker"], ["manage.py", "clock"], ["-c", "import config.wsgi"]],
    ids=lambda arguments: arguments[-1],
)
def test_every_part_refuses_to_start_on_unsafe_settings(arguments: list[str], tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=production(tmp_path, SECRET_KEY="short", ALLOWED_HOSTS="*"),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode != 0
    assert "SECRET_KEY is too short" in done.stderr
    assert "ALLOWED_HOSTS holds '*'" in done.stderr


def test_more_web_processes_are_refused_on_sqlite(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "manage.py", "up", "--workers", "2"],
        cwd=ROOT,
        env=production(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "SQLite is for one web process" in done.stderr


def test_up_brings_everything_up_and_takes_it_down(
    spawn: Callable[..., "subprocess.Popen[bytes]"],
) -> None:
    # A short path: where pytest's own is too long for a socket, the socket goes elsewhere.
    with tempfile.TemporaryDirectory(prefix="up-") as folder:
        _up_and_down(spawn, Path(folder))


def _up_and_down(spawn: Callable[..., "subprocess.Popen[bytes]"], folder: Path) -> None:
    port, log = _free_port(), folder / "up.log"
    env = production(folder)
    if database := create_database(f"up_{uuid.uuid4().hex}"):
        env["DATABASE_URL"] = database
    process = spawn([sys.executable, "manage.py", "up", "--port", str(port)], env=env, log=log)
    assert wait_until(lambda: "Landed answers at" in log.read_text(), within_s=60), log.read_text()
    assert parts.speaks_http(f"http://127.0.0.1:{port}/healthz")
    assert (folder / "redis.sock").exists()
    assert any((folder / "static").rglob("*.css"))
    process.terminate()
    assert process.wait(8) == 0, log.read_text()
    assert not parts.speaks_http(f"http://127.0.0.1:{port}/healthz")
    assert not is_alive(process.pid)
