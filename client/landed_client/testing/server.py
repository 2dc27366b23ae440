"""A real Landed with its sandbox, for as long as a test run lasts."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HOME: Final = "LANDED_HOME"
PYTHON: Final = "LANDED_PYTHON"
_STOP_WITHIN_S: Final = 10.0
# The server makes its own settings; what a test run lives on must not leak in.
_NOT_HANDED_ON: Final = ("LANDED_MODE", "LANDED_DATA", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE")


class NoServer(RuntimeError):
    """There is no Landed to start, or it did not start; the message says what to do."""


@dataclass(frozen=True)
class Server:
    """A running one. `logins`: people by role, as `manage.py demo --print-json` names them."""

    base_url: str
    sandbox_url: str
    token: str
    logins: tuple[dict[str, str], ...]
    data: Path
    home: Path
    python: str

    def login(self, role: str, number: int = 0) -> dict[str, str]:
        return [one for one in self.logins if one["role"] == role][number]

    def manage(self, *arguments: str) -> str:
        """What `manage.py` says to these arguments, with this server's settings and database."""
        env = _environment() | {"LANDED_MODE": "demo", "LANDED_DATA": str(self.data)}
        done = subprocess.run(
            [self.python, "manage.py", *arguments], cwd=self.home, env=env, capture_output=True, text=True, check=True
        )
        return done.stdout

    def allow_per_minute(self, requests: int) -> None:
        """Lets every agent propose so often; the demo's own limit is 500 a minute."""
        self.manage(
            "shell", "-c", f"from actions.models import Agent; Agent.objects.update(rate_per_minute={requests})"
        )


def home() -> Path:
    """The checkout to start: $LANDED_HOME, or the one that this package lies in. Raises NoServer."""
    named = os.environ.get(HOME)
    for folder in [Path(named)] if named else Path(__file__).resolve().parents:
        if (folder / "manage.py").is_file() and (folder / "sandbox").is_dir():
            return folder
    raise NoServer(f"There is no Landed to start: set {HOME} to a checkout of it (and {PYTHON} to its Python).")


def python_of(folder: Path) -> str:
    """$LANDED_PYTHON, or the checkout's own virtual environment. Raises NoServer."""
    named = os.environ.get(PYTHON)
    if named:
        return named
    found = folder / ".venv" / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    if not found.exists():
        raise NoServer(f"{found} is missing: run `make setup` in {folder}, or set {PYTHON}.")
    return str(found)


@contextlib.contextmanager
def start_server(data: Path, *, within_s: float = 90.0) -> Iterator[Server]:
    """Starts it on free ports, with its data in the folder `data`, and stops all of it afterwards.

    SQLite, whatever the run itself uses; decisions take effect at once. Raises NoServer.
    """
    folder = home()
    process = _launch(folder, data)
    try:
        yield _server(_first_line(process, data, within_s), folder)
    finally:
        _stop(process)


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _NOT_HANDED_ON}


def _launch(folder: Path, data: Path) -> "subprocess.Popen[str]":
    command = [python_of(folder), "manage.py", "demo", "--print-json", "--no-traffic", "--data", str(data)]
    with (data / "stderr.log").open("wb") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env={"LANDED_UNDO_S": "0"} | _environment(),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )


def _first_line(process: "subprocess.Popen[str]", data: Path, within_s: float) -> dict[str, Any]:
    assert process.stdout is not None
    timer = threading.Timer(within_s, process.kill)
    timer.start()
    try:
        line = process.stdout.readline()
    finally:
        timer.cancel()
    if not line:
        raise NoServer(f"Landed did not start:\n{(data / 'stderr.log').read_text()[-4_000:]}")
    found: dict[str, Any] = json.loads(line)
    return found


def _server(facts: dict[str, Any], folder: Path) -> Server:
    return Server(
        base_url=facts["base_url"],
        sandbox_url=facts["sandbox_url"],
        token=facts["agent_token"],
        logins=tuple(facts["logins"]),
        data=Path(facts["data"]),
        home=folder,
        python=python_of(folder),
    )


def _stop(process: "subprocess.Popen[str]") -> None:
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
