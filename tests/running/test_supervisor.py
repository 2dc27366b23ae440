"""Child processes: what dies comes back, what is stopped leaves nothing."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from config import children, parts, servers
from config.children import wait_until
from config.supervisor import NotReady, Part, Stopped, Supervisor
from tests.servers import Redis, is_alive

_SLEEPER = [sys.executable, "-c", "import time; time.sleep(60)"]
_STUBBORN = [
    sys.executable,
    "-c",
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready', flush=True); time.sleep(60)",
]


@pytest.fixture
def supervisor() -> Iterator[Supervisor]:
    found = Supervisor(grace_s=0.5)
    yield found
    found.stop()


def test_a_part_that_was_killed_is_started_again(supervisor: Supervisor) -> None:
    part = Part("sleeper", _SLEEPER)
    supervisor.start(part)
    before = part.pid
    os.kill(before, signal.SIGKILL)

    def is_back() -> bool:
        part.revive()
        return part.is_alive() and part.pid != before

    assert wait_until(is_back, within_s=3)


def test_a_part_that_keeps_dying_is_started_less_and_less_often(supervisor: Supervisor, tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    part = Part("dying", ["/bin/sh", "-c", f"echo x >> {starts}"])
    supervisor.launch(part)
    until = time.monotonic() + 1.2
    while time.monotonic() < until:
        part.revive()
        time.sleep(0.02)
    assert 2 <= len(starts.read_text().split()) <= 4


def test_a_part_that_dies_while_starting_is_told_with_its_last_words(supervisor: Supervisor, tmp_path: Path) -> None:
    part = Part(
        "broken", ["/bin/sh", "-c", "echo no such port >&2; exit 3"], log=tmp_path / "log", answers=lambda: False
    )
    with pytest.raises(NotReady, match=r"broken ended(.|\n)*no such port"):
        supervisor.start(part)


def test_a_stop_while_starting_stops(supervisor: Supervisor) -> None:
    supervisor.launch(Part("silent", _SLEEPER, answers=lambda: False))
    supervisor._stop.set()
    with pytest.raises(Stopped):
        supervisor.await_answers()


def test_stopping_kills_what_does_not_listen(supervisor: Supervisor, tmp_path: Path) -> None:
    log = tmp_path / "log"
    part = Part("stubborn", _STUBBORN, log=log, answers=lambda: "ready" in log.read_text())
    supervisor.start(part)
    supervisor.stop()
    assert not is_alive(part.pid)


def test_stopping_ends_grandchildren_too(supervisor: Supervisor, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    part = Part("parent", ["/bin/sh", "-c", f"sleep 60 & echo $! > {note}; wait"], answers=note.exists)
    supervisor.start(part)
    assert wait_until(lambda: note.read_text().strip() != "", within_s=2)
    supervisor.stop()
    assert wait_until(lambda: not is_alive(int(note.read_text())), within_s=2)


@pytest.mark.skipif(sys.platform != "linux", reason="needs the kernel's help")
def test_children_die_with_a_parent_that_was_killed(spawn: Callable[..., subprocess.Popen[bytes]]) -> None:
    program = (
        "import sys, time; from config import children; "
        f"print(children.start({_SLEEPER!r}).pid, flush=True); time.sleep(60)"
    )
    parent = spawn([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert is_alive(child)
    parent.kill()
    assert wait_until(lambda: not is_alive(child), within_s=2)


def test_the_embedded_redis_comes_back_on_its_socket(supervisor: Supervisor, tmp_path: Path) -> None:
    socket = servers.socket_in(tmp_path)
    part = parts.redis(socket)
    supervisor.start(part)
    os.kill(part.pid, signal.SIGKILL)
    part.process.wait()  # type: ignore[union-attr]

    def is_back() -> bool:
        part.revive()
        return servers.answers(servers.redis_url(socket))

    assert wait_until(is_back, within_s=3)


def test_the_embedded_redis_has_no_port_and_keeps_nothing(own_redis: Redis) -> None:
    import redis

    with redis.Redis.from_url(own_redis.url, decode_responses=True) as connection:
        wanted = {"port": "0", "save": "", "appendonly": "no", "maxmemory-policy": "noeviction"}
        assert {name: connection.config_get(name)[name] for name in wanted} == wanted
    assert own_redis.socket.stat().st_mode & 0o077 == 0


def test_a_socket_whose_path_would_be_too_long_goes_elsewhere(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 120)
    deep.mkdir()
    socket = servers.socket_in(deep)
    assert len(str(socket)) <= 100
    server = servers.start_redis(socket)
    children.stop([server])
    servers.remove_socket_folder(deep, socket)
    assert not socket.parent.exists()
    servers.remove_socket_folder(tmp_path, servers.socket_in(tmp_path))
    assert tmp_path.exists()


def test_without_any_redis_server_the_message_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers.importlib.util, "find_spec", lambda _: None)
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(FileNotFoundError, match="REDIS_URL"):
        servers.redis_server_path()
