"""The connection under `actions.transport`: it notes how far a call got and keeps the call's time.

Why urllib3's connection and not requests or a pool: exception classes don't tell whether anything left
(requests raises ConnectionError for a refused connection and for a peer that closed after the POST alike),
and sessions and pools bring what must not be here: retries, redirects, silent reconnects, proxies from the
environment. One connection object has none of that; http.client's own reconnecting is switched off below.
"""

from __future__ import annotations

import os
import queue
import socket
import ssl
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import lru_cache
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, NamedTuple

import certifi
from urllib3 import BaseHTTPResponse
from urllib3.connection import HTTPConnection

from actions.phases import Phase, Reason, Stopped, Trace, boot_clock

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer


class _TimedSocket(socket.socket):
    """Gives every single read and write what is left of the call's time, so that trickling gains none."""

    trace: Trace

    def recv_into(self, buffer: WriteableBuffer, nbytes: int | None = None, flags: int = 0) -> int:
        trace = self.trace
        try:
            self.settimeout(trace.left())
            count = super().recv_into(buffer, nbytes or memoryview(buffer).nbytes, flags)
        except OSError as exc:
            trace.trouble = exc
            trace.ended = isinstance(exc, ssl.SSLEOFError)
            raise
        if count == 0:
            trace.ended = True
        elif trace.phase is Phase.SENT:
            trace.phase = Phase.HEADERS
        return count

    def sendall(self, data: ReadableBuffer, flags: int = 0) -> None:
        # Not super().sendall(): the TLS one starts the time-out afresh with every part.
        rest = memoryview(data).cast("B")
        try:
            while rest:
                self.settimeout(self.trace.left())
                rest = rest[super().send(rest[:65536], flags) :]
        except OSError as exc:
            self.trace.trouble = exc
            raise


class _TimedTlsSocket(_TimedSocket, ssl.SSLSocket):
    pass


@lru_cache(maxsize=64)
def tls_context(ca_file: str | None) -> ssl.SSLContext:
    """Verifies against `ca_file`, or certifi's roots as requests does. Raises OSError for a bad file."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies by default; reads no environment
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    context.load_verify_locations(ca_file or certifi.where())
    context.sslsocket_class = _TimedTlsSocket
    return context


def resolve(host: str, port: int, timeout: float) -> list[Any]:
    """`getaddrinfo` that ends: it takes no time-out, so it runs in a thread that may be left behind."""
    numeric = socket.AI_NUMERICHOST | socket.AI_NUMERICSERV
    with suppress(socket.gaierror):
        return socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=numeric)
    found: queue.SimpleQueue[list[Any] | Exception] = queue.SimpleQueue()

    def look() -> None:
        try:
            found.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except Exception as exc:  # noqa: BLE001  handed over, and raised in the caller's thread
            found.put(exc)

    try:
        threading.Thread(target=look, name="resolve", daemon=True).start()
        outcome = found.get(timeout=timeout)
    except queue.Empty:
        raise TimeoutError("the host name was not resolved in time") from None
    except RuntimeError as exc:  # no more threads: nothing was sent, and that must be said
        raise OSError(f"the host name could not be looked up: {exc}") from exc
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


def _open(addresses: list[Any], trace: Trace) -> _TimedSocket:
    """Connects to the first address that answers; an address that is silent can't use up the others' time."""
    trouble: OSError = OSError("the host name has no address")
    for index, (family, kind, protocol, _, address) in enumerate(addresses):
        sock: _TimedSocket | None = None
        try:
            sock = _TimedSocket(family, kind, protocol)
            sock.trace = trace
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(trace.left() / (len(addresses) - index))
            sock.connect(address)
        except OSError as exc:
            trouble = exc
            if sock is not None:
                sock.close()
        except BaseException:
            if sock is not None:
                sock.close()
            raise
        else:
            return sock
    raise trouble


class Connection(HTTPConnection):
    """One connection to one host; `begin` ties it to the call that uses it now."""

    auto_open = 0  # http.client would reconnect in mid-send without asking

    def __init__(
        self, host: str, port: int, context: ssl.SSLContext | None, vet: Callable[[str], None] | None = None
    ) -> None:
        super().__init__(host, port)
        self.context = context
        self.vet = vet
        # Decides whether the Host header names the port.
        self.default_port = 443 if context else 80  # type: ignore[misc]  # a class variable in the stubs

    def begin(self, trace: Trace) -> None:
        self.trace = trace
        if self.sock is not None:
            self.sock.trace = trace  # type: ignore[union-attr]

    def connect(self) -> None:
        trace = self.trace
        trace.phase = Phase.RESOLVE
        addresses = resolve(self.host, self.port, trace.left())
        trace.phase = Phase.CONNECT
        if self.vet is not None:
            # What is looked at is what is connected to: the name is not resolved a second time.
            for *_, address in addresses:
                self.vet(address[0])
        sock = _open(addresses, trace)
        if self.context is None:
            self.sock = sock
            return
        try:
            trace.phase = Phase.HANDSHAKE
            sock.settimeout(trace.left())  # OpenSSL's handshake keeps it as a whole, not per read
            # A stream that ends without TLS saying so may have been cut by anyone: don't suppress that.
            tls = self.context.wrap_socket(sock, server_hostname=self.host, suppress_ragged_eofs=False)
        finally:
            sock.close()  # wrapped or not: what is left of it here is an empty shell
        tls.trace = trace  # type: ignore[attr-defined]  # the context makes _TimedTlsSocket
        self.sock = tls

    def send(self, data: Any) -> None:
        trace = self.trace
        if trace.phase < Phase.FIRST_BYTE:
            trace.left()
            # The last thing before the first byte, so that a process which slept here sends nothing late.
            if trace.send_by is not None and boot_clock() > trace.send_by:
                raise Stopped(Reason.TOO_LATE, "the send-by time had passed; nothing was sent")
            trace.phase = Phase.FIRST_BYTE
        super().send(data)

    def request(self, *args: Any, **kwargs: Any) -> None:
        super().request(*args, **kwargs)
        self.trace.phase = Phase.SENT

    def getresponse(self) -> BaseHTTPResponse:  # type: ignore[override]
        response = super().getresponse()
        if self.trace.ended:  # http.client takes the end of the stream for the end of the headers
            response.close()
            raise HTTPException("the stream ended inside the headers")
        self.trace.phase = Phase.BODY
        return response


class Place(NamedTuple):
    scheme: str
    host: str
    port: int
    ca_file: str | None = None


class _Open(dict[Place, Connection]):
    """Closes what it holds when its thread, and so it, ends."""

    def __del__(self) -> None:
        while self:
            self.popitem()[1].close()


class Idle(threading.local):
    """Open connections of this thread and this process, at most one per place: sockets are never shared."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.connections = _Open()

    def take(self, place: Place) -> Connection | None:
        if self.pid != os.getpid():
            self.__init__()  # type: ignore[misc]  # forked: these are the parent's
        connection = self.connections.pop(place, None)
        if connection is not None and not connection.is_connected:  # closed meanwhile, or talking unasked
            connection.close()
            return None
        return connection

    def close(self) -> None:
        """Closes this thread's."""
        while self.connections:
            self.connections.popitem()[1].close()

    def put(self, place: Place, connection: Connection) -> None:
        replaced = self.connections.pop(place, None)
        if replaced is not None:
            replaced.close()
        self.connections[place] = connection


idle = Idle()
