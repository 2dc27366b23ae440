"""What Landed consists of on one machine: the command, the environment and the sign of life of each part."""

import http.client
import os
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from config import beats, servers
from config.children import ROOT
from config.supervisor import Part

_MANAGE = (sys.executable, str(ROOT / "manage.py"))
# Enough for people and agents on one machine; SQLite gains nothing from more.
WEB_THREADS = 16


def redis(socket: Path, *, log: Path | None = None) -> Part:
    url = servers.redis_url(socket)
    return Part("redis", servers.redis_command(socket), log=log, answers=lambda: servers.answers(url), last=True)


def web(
    *, host: str, port: int, processes: int, threads: int, env: Mapping[str, str], log: Path | None = None
) -> Part:
    command = [
        *(sys.executable, "-m", "granian", "--interface", "wsgi", "--no-ws"),
        *("--host", host, "--port", str(port)),
        *("--workers", str(processes), "--blocking-threads", str(threads)),
        *("--workers-kill-timeout", "2", "--log-level", "warning"),
        "config.wsgi:application",
    ]
    local = "127.0.0.1" if host in ("0.0.0.0", "::") else host
    url = f"http://{local}:{port}/healthz"
    # granian's own children have no parent but granian: see config/wsgi.py.
    return Part("web", command, env={**env, "LANDED_SUPERVISED": "1"}, log=log, answers=lambda: speaks_http(url))


def worker(number: int, *, beat: Path, env: Mapping[str, str], log: Path | None = None) -> Part:
    return _beating(f"worker-{number}", "worker", beat=beat, env=env, log=log)


def clock(number: int, *, beat: Path, env: Mapping[str, str], log: Path | None = None) -> Part:
    return _beating(f"clock-{number}", "clock", beat=beat, env=env, log=log)


def sandbox(*, port: int, books: Path, log: Path | None = None) -> Part:
    command = [sys.executable, "-m", "sandbox", "--port", str(port), "--books", str(books)]
    url = f"http://127.0.0.1:{port}/healthz"
    return Part("sandbox", command, log=log, answers=lambda: speaks_http(url), last=True)


def _beating(name: str, command: str, *, beat: Path, env: Mapping[str, str], log: Path | None) -> Part:
    began = time.time()
    return Part(
        name,
        [*_MANAGE, command, "--beat", str(beat)],
        env=dict(env),
        log=log,
        answers=lambda: beats.seen(beat, since=began),
    )


def speaks_http(url: str, *, timeout_s: float = 2.0) -> bool:
    """Whether something answers there without a server error. A refused Host or a redirect is an answer."""
    found = urlsplit(url)
    connection = http.client.HTTPConnection(found.hostname or "", found.port or 80, timeout=timeout_s)
    try:
        connection.request("GET", found.path or "/")
        return connection.getresponse().status < 500
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def file_of(folder: Path, name: str, suffix: str) -> Path:
    """`folder/run/name.suffix`, with the folder made."""
    run = folder / "run"
    run.mkdir(parents=True, exist_ok=True)
    return run / f"{name}.{suffix}"


def given_redis_url() -> str | None:
    """The operator's own Redis, if there is one."""
    return os.environ.get("REDIS_URL") or None
