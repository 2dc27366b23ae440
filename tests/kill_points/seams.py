"""Every moment at which the world outside this process changes: commits, and what goes in and out of sockets.

Installed in a process that is about to do its work. Nothing here knows what that work is: a commit or a request that
the product makes tomorrow is a point tomorrow.
"""

from __future__ import annotations

import _socket
import os
import signal
import socket
import sys
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.utils import CursorWrapper

_ROOT = Path(__file__).parents[2]
_OURS = tuple(f"{_ROOT / name}{os.sep}" for name in ("actions", "reconciliation", "config"))
# What these begin changes nothing that stays.
_READS = ("SELECT", "PRAGMA", "BEGIN", "SAVEPOINT", "RELEASE", "ROLLBACK", "SET", "SHOW", "EXPLAIN")


@dataclass(frozen=True)
class Point:
    """`what`: commit, write (a statement that commits by itself), send, receive or connect. `to`: database, redis,
    downstream, or whoever asks ("client"). `when`: before, half (of the bytes), after. `where`: whose line it is."""

    what: str
    to: str
    when: str
    where: str

    @property
    def changes(self) -> bool:
        """Whether something has left this process by now that had not before: all else dies with it."""
        return self.what in ("commit", "write", "send") and self.when != "before"

    def __str__(self) -> str:
        return f"{self.when} {self.what} ({self.to}), {self.where}"


@dataclass
class Seams:
    """Tells of the points that are passed; or dies at one, having told of it: `die_at` names it, and the how-manieth
    of its name it is (from 1); None for the name: the very first of all. (In how many pieces something is sent to
    Redis, or received, is chance, and moves no other point.)

    `peers`: what listens where, by port. `tell`: hears of each point. `commits`: how many commits the database itself
    has written down so far, if it can say: what it counts outside of the points is in `unseen`.
    """

    peers: Mapping[int, str]
    tell: Callable[[Point], None]
    die_at: tuple[Point | None, int] | None = None
    commits: Callable[[], int] | None = None
    begun: bool = False
    passed: Counter[Point] = field(default_factory=Counter)
    seen: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def at_once(self) -> bool:
        return self.die_at == (None, 1)

    def reach(self, point: Point) -> bool:
        """Whether this is where it ends; whoever asks has something left to do first, or `die` does it."""
        with self._lock:
            first, self.begun = not self.begun, True
            self.passed[point] += 1
            here = self.die_at == ((None, 1) if first and self.at_once else (point, self.passed[point]))
        if self.die_at is None or here:
            self.tell(point)
        return here

    def at(self, what: str, to: str, when: str) -> None:
        if self.reach(Point(what, to, when, _where())):
            die()

    def around(self, what: str, to: str, act: Callable[[], Any]) -> Any:
        self.at(what, to, "before")
        before = self.commits() if self.commits and to == "database" else 0
        found = act()
        if self.commits and to == "database":
            self.seen += self.commits() - before
        self.at(what, to, "after")
        return found

    def install(self) -> None:
        """For the rest of this process's life."""
        self._at_commits()
        self._at_sockets()

    def _at_commits(self) -> None:
        commit, execute = BaseDatabaseWrapper._commit, CursorWrapper._execute_with_wrappers  # type: ignore[attr-defined]

        def commits(connection: Any) -> None:
            self.around("commit", "database", lambda: commit(connection))

        def writes(cursor: Any, sql: Any, params: Any, many: bool, executor: Any) -> Any:
            def act() -> Any:
                return execute(cursor, sql, params, many, executor)

            alone = not cursor.db.in_atomic_block and not str(sql).lstrip(" (\n").upper().startswith(_READS)
            return self.around("write", "database", act) if alone else act()

        BaseDatabaseWrapper._commit = commits  # type: ignore[attr-defined]
        CursorWrapper._execute_with_wrappers = writes  # type: ignore[attr-defined]

    def _at_sockets(self) -> None:
        for name in ("recv", "recv_into", "recvfrom", "recvfrom_into", "recvmsg", "recvmsg_into"):
            self._wrap("receive", name)
        self._wrap("connect", "connect")
        self._wrap("connect", "connect_ex")
        for name in ("send", "sendall", "sendto", "sendmsg"):
            self._wrap_writing(name)

    def _wrap(self, what: str, name: str) -> None:
        real = getattr(_socket.socket, name)

        def around(sock: Any, *args: Any) -> Any:
            to = self._peer(sock, args[0] if what == "connect" else None)
            return self.around(what, to, lambda: real(sock, *args))

        setattr(socket.socket, name, around)

    def _wrap_writing(self, name: str) -> None:
        real = getattr(_socket.socket, name)

        def around(sock: Any, data: Any, *args: Any) -> Any:
            to = self._peer(sock, None)
            size = sum(len(part) for part in data) if name == "sendmsg" else memoryview(data).nbytes
            self.at("send", to, "before")
            if size > 1 and self.reach(Point("send", to, "half", _where())):
                whole = b"".join(data) if name == "sendmsg" else bytes(data)
                _socket.socket.sendall(sock, whole[: size // 2])
                die()
            found = real(sock, data, *args)
            self.at("send", to, "after")
            return found

        setattr(socket.socket, name, around)

    def _peer(self, sock: socket.socket, address: Any) -> str:
        if sock.family == socket.AF_UNIX:
            return "redis"
        try:
            found = address or sock.getpeername()
        except OSError:
            return "nobody"
        return self.peers.get(found[1], "client")


def die() -> None:
    """As by the kernel for want of memory: no handler, no finally, no flush."""
    os.kill(os.getpid(), signal.SIGKILL)
    threading.Event().wait()  # it does not come back


def _where() -> str:
    """The innermost line of the product that this came from."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if name.startswith(_OURS):
            return f"{Path(name).relative_to(_ROOT)}:{frame.f_lineno} {frame.f_code.co_name}"
        frame = frame.f_back
    return "the web server"
