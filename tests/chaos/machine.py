"""Everything that runs, each part as in production, with its data below one temporary folder. Main thread only: the
kernel ends a child when the thread that started it ends."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from config import children, parts, servers
from config.supervisor import Part
from tests.chaos import asking, plan
from tests.servers import PostgreSQL, memory_folder

WORKERS, CLOCKS = 3, 2
# So long a part is left alone when it is back.
_REST_S = 2.0
# What the caller lives on must not leak in.
_OURS = (
    *("LANDED_MODE", "LANDED_DATA", "DATABASE_URL", "REDIS_URL", "DJANGO_SETTINGS_MODULE", "LANDED_TEST_SERVERS"),
    # Every process that starts would compile everything anew.
    "PYTHONDONTWRITEBYTECODE",
)


@dataclass
class Machine:
    """`parts`: by name. `down`: those that are meant to be dead now. `ended`: what died without being killed."""

    folder: Path
    database_url: str
    redis_url: str
    postgresql: PostgreSQL | None
    parts: dict[str, Part] = field(default_factory=dict)
    down: set[str] = field(default_factory=set)
    stopped: set[str] = field(default_factory=set)
    ended: list[str] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    sandboxes: dict[str, str] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    _again: dict[str, float] = field(default_factory=dict)
    _sound_since: dict[str, float] = field(default_factory=dict)

    def named(self, sort: str) -> list[str]:
        """Names of the parts of one sort (web, worker, clock, sandbox) that do their work, and have for a while: on a
        machine that is busy they take long to start, and are to do something in between."""
        mine = [name for name in self.parts if name.split("-")[0] == sort]
        return [name for name in mine if time.monotonic() - self._sound_since.get(name, time.monotonic()) > _REST_S]

    def look_around(self) -> None:
        """Notes which parts do their work."""
        for name, part in self.parts.items():
            if name in self.down | self.stopped or not part.is_alive():
                self._sound_since.pop(name, None)
            elif name not in self._sound_since and (part.answers is None or part.answers()):
                self._sound_since[name] = time.monotonic()

    def kill(self, name: str) -> None:
        self.down.add(name)
        self._sound_since.pop(name, None)
        self._signal(name, signal.SIGKILL)
        if (process := self.parts[name].process) is not None:
            process.wait()

    def start(self, name: str) -> None:
        self.down.discard(name)
        parts.file_of(self.folder, name, "beat").unlink(missing_ok=True)  # that of the one before says nothing
        self.parts[name].start()

    def freeze(self, name: str) -> None:
        self.stopped.add(name)
        self._sound_since.pop(name, None)
        self._signal(name, signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        self.stopped.discard(name)
        self._signal(name, signal.SIGCONT)

    def _signal(self, name: str, number: int) -> None:
        process = self.parts[name].process
        assert process is not None
        children.signal_group(process, number)

    def revive(self) -> None:
        """Starts again what ended by itself, as a supervisor would: a part that finds no database refuses to run."""
        for name, part in self.parts.items():
            if name in self.down or part.is_alive():
                self._again.pop(name, None)
            elif name not in self._again:
                self._again[name] = time.monotonic() + 0.5
                self.ended.append(name)
            elif time.monotonic() > self._again[name]:
                self.kill(name)  # what is left of its group must not hold its port
                self.start(name)
                self._again.pop(name)

    def sweep(self) -> "subprocess.Popen[bytes]":
        """One more sweep beside the clocks, as a command of its own."""
        return children.start([sys.executable, "manage.py", "sweep"], log=self.log("sweep"))

    def log(self, name: str) -> Path:
        return parts.file_of(self.folder, name, "log")

    def books_of(self, name: str) -> Path:
        return self.folder / f"books-{name}.sqlite3"

    def verify(self) -> tuple[int, str]:
        done = subprocess.run(
            [sys.executable, "manage.py", "verify_history"],
            cwd=children.ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, (done.stdout + done.stderr).strip()[-4_000:]

    def rest(self) -> None:
        """Landed's own parts end, each after what it has in hand: what is read now stays as it is."""
        mine = [part.process for name, part in self.parts.items() if name.split("-")[0] in ("web", "worker", "clock")]
        children.stop([process for process in mine if process is not None], grace_s=20)

    def stop(self) -> None:
        running = [part.process for part in self.parts.values() if part.process]
        for process in running:
            children.signal_group(process, signal.SIGCONT)
        children.stop(running, grace_s=1.0)
        if self.postgresql is not None:
            self.postgresql.stop()


@contextlib.contextmanager
def running(wanted: plan.Plan, *, keep: bool = False) -> Iterator[Machine]:
    """Everything up and seeded; gone afterwards, whatever happens. `keep`: the folder stays."""
    folder = Path(tempfile.mkdtemp(prefix="landed-chaos-", dir=memory_folder()))
    folder.chmod(0o711)  # PostgreSQL may have to run as somebody else
    machine = None
    try:
        machine = _make(wanted, folder)
        _start(machine, wanted)
        yield machine
    finally:
        if machine is not None:
            machine.stop()
        if keep:
            print(f"kept: {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)


def _make(wanted: plan.Plan, folder: Path) -> Machine:
    postgresql = PostgreSQL(inside=folder) if wanted.database == "postgresql" else None
    database = postgresql.url_of() if postgresql else f"sqlite:///{folder / 'landed.sqlite3'}"
    redis = servers.redis_url(servers.socket_in(folder))
    _set_environment(folder, database, redis)
    return Machine(folder, database, redis, postgresql)


def _set_environment(folder: Path, database: str, redis: str) -> None:
    """Of this process: its children inherit it."""
    for name in _OURS:
        os.environ.pop(name, None)
    os.environ.update(
        LANDED_MODE="test",
        LANDED_DATA=str(folder),
        DATABASE_URL=database,
        REDIS_URL=redis,
        LANDED_CLOCK_S="0.5",
        LANDED_UNDO_S=str(plan.UNDO_S),
        DJANGO_SETTINGS_MODULE="config.settings",
        LOG_LEVEL="WARNING",
    )


def _start(machine: Machine, wanted: plan.Plan) -> None:
    add = machine.parts.__setitem__
    add("redis", parts.redis(servers.socket_of(machine.redis_url), log=machine.log("redis")))
    for name in ("payments", "bank"):
        port = _free_port()
        machine.sandboxes[name] = f"http://127.0.0.1:{port}"
        part = parts.sandbox(port=port, books=machine.books_of(name), log=machine.log(f"sandbox-{name}"))
        add(f"sandbox-{name}", part)
    _launch(machine, list(machine.parts))
    for url in machine.sandboxes.values():
        # So that a look has pages to turn, and can come too early.
        config = {"page_size": 2, "ledger_lag_s": 0.8 * plan.LAG_S}
        asking.Http(threads=1).send("POST", f"{url}/_control/config", config, timeout_s=10)
    machine.facts = _seed(machine)
    before = set(machine.parts)
    for number in range(1, wanted.webs + 1):
        port = _free_port()
        machine.urls.append(f"http://127.0.0.1:{port}")
        name = f"web-{number}"
        log = machine.log(name)
        add(name, parts.web(host="127.0.0.1", port=port, processes=1, threads=parts.WEB_THREADS, env={}, log=log))
    for number in range(1, WORKERS + 1):
        add(f"worker-{number}", _beating(machine, parts.worker, "worker", number))
    for number in range(1, CLOCKS + 1):
        add(f"clock-{number}", _beating(machine, parts.clock, "clock", number))
    _launch(machine, [name for name in machine.parts if name not in before])


def _beating(machine: Machine, make: Any, sort: str, number: int) -> Part:
    name = f"{sort}-{number}"
    beat = parts.file_of(machine.folder, name, "beat")
    made: Part = make(number, beat=beat, env={}, log=machine.log(name))
    return made


def _launch(machine: Machine, names: list[str]) -> None:
    for name in names:
        machine.parts[name].start()
    for name in names:
        part = machine.parts[name]
        if not children.wait_until(
            lambda part=part: not part.is_alive() or part.answers(), within_s=90, every_s=0.05
        ):
            raise RuntimeError(f"{name} does not answer.\n{part.last_words()}")
        if not part.is_alive():
            raise RuntimeError(f"{name} ended while starting.\n{part.last_words()}")


def _seed(machine: Machine) -> dict[str, Any]:
    urls = machine.sandboxes
    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.seeding", urls["payments"], urls["bank"]],
        cwd=children.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"seeding failed:\n{done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
