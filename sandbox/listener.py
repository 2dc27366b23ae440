"""The listening socket: accepts connections, and can refuse them for a while on order."""

import contextlib
import queue
import selectors
import socket
import threading
import time
from collections.abc import Callable

HOST = "127.0.0.1"
BACKLOG = 512


class Listener:
    """One port on loopback. Only the thread in `serve` touches the listening socket after the start."""

    def __init__(self, port: int) -> None:
        self._sock = _reserve(port)
        self._sock.listen(BACKLOG)
        self._wake, self._woken = socket.socketpair()
        self._orders: queue.SimpleQueue[tuple[float, threading.Event]] = queue.SimpleQueue()
        self._reopens_at: float | None = None
        self.port: int = self._sock.getsockname()[1]

    def refuse_for(self, seconds: float) -> None:
        """Refuse new connections for `seconds`; returns once they are refused. Open ones stay open."""
        closed = threading.Event()
        self._orders.put((seconds, closed))
        self._wake.send(b"!")
        closed.wait(timeout=10)

    def serve(self, handle: Callable[[socket.socket], None]) -> None:
        """Accept for ever; `handle` runs in a thread of its own for every connection."""
        while True:
            self._reopen_when_due()
            for ready in self._wait():
                if ready is self._woken:
                    self._follow_orders()
                elif self._reopens_at is None:
                    self._accept(handle)

    def _wait(self) -> list[object]:
        with selectors.DefaultSelector() as selector:
            selector.register(self._woken, selectors.EVENT_READ)
            timeout = None
            if self._reopens_at is None:
                selector.register(self._sock, selectors.EVENT_READ)
            else:
                timeout = max(0.0, self._reopens_at - time.monotonic())
            return [key.fileobj for key, _ in selector.select(timeout)]

    def _accept(self, handle: Callable[[socket.socket], None]) -> None:
        try:
            connection, _ = self._sock.accept()
        except OSError:  # out of file descriptors, or the peer left again: neither ends the service
            time.sleep(0.01)
            return
        try:
            threading.Thread(target=handle, args=(connection,), daemon=True).start()
        except RuntimeError:  # no more threads
            connection.close()

    def _follow_orders(self) -> None:
        self._woken.recv(4096)
        with contextlib.suppress(queue.Empty):
            while True:
                seconds, closed = self._orders.get_nowait()
                if self._reopens_at is None:
                    self._stop_listening()
                self._reopens_at = max(self._reopens_at or 0.0, time.monotonic() + seconds)
                closed.set()

    def _stop_listening(self) -> None:
        """Swap the listener for a socket that is bound but does not listen: connecting to it is refused, and
        nobody else can take the port meanwhile."""
        self._sock.close()
        self._sock = _reserve(self.port)

    def _reopen_when_due(self) -> None:
        if self._reopens_at is not None and time.monotonic() >= self._reopens_at:
            self._sock.listen(BACKLOG)
            self._reopens_at = None


def _reserve(port: int) -> socket.socket:
    """A socket bound to the port, not listening; raises OSError when the port is taken."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.bind((HOST, port))
    return sock
