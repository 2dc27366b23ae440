"""Servers on loopback that misbehave on purpose. Each writes down what it got, so that tests can count."""

from __future__ import annotations

import contextlib
import os
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from typing import Self

Script = Callable[[socket.socket], None]


class Peer:
    """Accepts connections; for each reads one request and then runs `script` on the connection.

    `requests` holds the bytes of every request that arrived, whole or not; `connections` counts.
    """

    def __init__(
        self,
        script: Script,
        *,
        tls: ssl.SSLContext | None = None,
        read_requests: bool = True,
        keep_alive: bool = False,
    ) -> None:
        self.script, self.tls = script, tls
        self.read_requests, self.keep_alive = read_requests, keep_alive
        self.requests: list[bytes] = []
        self.connections = 0
        self.closed_by_client = threading.Event()
        self._open: list[socket.socket] = []
        self._stopping = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/v1/refunds"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for conn in self._open:
            with contextlib.suppress(OSError):
                conn.shutdown(socket.SHUT_RDWR)
            conn.close()

    def _accept(self) -> None:
        while not self._stopping:
            try:
                conn, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.append(conn)
            threading.Thread(target=self._serve, args=(conn,), daemon=True).start()

    def _serve(self, conn: socket.socket) -> None:
        with contextlib.suppress(OSError):
            if self.tls:
                conn = self.tls.wrap_socket(conn, server_side=True)
                self._open.append(conn)
            while True:
                if self.read_requests and not self._read_request(conn):
                    break
                self.script(conn)
                if not self.keep_alive:
                    break
        conn.close()

    def _read_request(self, conn: socket.socket) -> bool:
        data = b""
        while not _whole(data):
            part = conn.recv(65536)
            if not part:
                self.closed_by_client.set()
                if data:
                    self.requests.append(data)
                return False
            data += part
        self.requests.append(data)
        return True


def _whole(data: bytes) -> bool:
    head, gap, body = data.partition(b"\r\n\r\n")
    if not gap:
        return False
    for line in head.split(b"\r\n"):
        name, _, value = line.partition(b":")
        if name.lower() == b"content-length":
            return len(body) >= int(value)
    return True


def answer(body: bytes = b"{}", *headers: str, status: str = "200 OK", length: int | None = None) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", *headers]
    if length != -1:  # -1: no length at all
        lines.append(f"Content-Length: {len(body) if length is None else length}")
    return ("\r\n".join(lines) + "\r\n\r\n").encode() + body


def replies(data: bytes) -> Script:
    return lambda conn: conn.sendall(data)


def in_turn(*scripts: Script) -> Script:
    """The first request gets the first script, and so on."""
    rest = iter(scripts)

    def script(conn: socket.socket) -> None:
        next(rest)(conn)

    return script


def closes(conn: socket.socket) -> None:
    """Ends the connection in good order, without a word."""


def resets(conn: socket.socket) -> None:
    conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    conn.close()


def silent(conn: socket.socket) -> None:
    """Says nothing until the client is gone."""
    with contextlib.suppress(OSError):
        while conn.recv(65536):
            pass


def trickles(data: bytes, every: float, start: bytes = b"") -> Script:
    def script(conn: socket.socket) -> None:
        conn.sendall(start)
        for byte in data:
            conn.sendall(bytes([byte]))
            time.sleep(every)

    return script


def stalls_after(data: bytes) -> Script:
    def script(conn: socket.socket) -> None:
        conn.sendall(data)
        silent(conn)

    return script


def resets_after(data: bytes) -> Script:
    def script(conn: socket.socket) -> None:
        conn.sendall(data)
        time.sleep(0.1)  # let the client read it: a reset discards what is still under way
        resets(conn)

    return script


def breaks_encryption(conn: socket.socket) -> None:
    """Puts bytes under TLS that no key decrypts."""
    with socket.socket(fileno=os.dup(conn.fileno())) as below:
        below.sendall(b"\x17\x03\x03\x00\x40" + os.urandom(64))
        time.sleep(0.1)
