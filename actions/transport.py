"""One HTTP request, sent at most once, by something that knows how far it got.

`send` makes no retries, follows no redirects, reads no environment (proxies, netrc) and keeps one deadline
over everything, from the host name to the last byte of the answer. What happened is read off the connection
(`actions.wire`), never guessed from an exception's class.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from urllib.parse import urlsplit

from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

from actions.phases import REASONS, Phase, Reason, Stopped, Trace, boot_clock, explain, is_foreign
from actions.wire import Connection, Place, idle, tls_context

__all__ = [
    "REASONS",
    "Call",
    "Limits",
    "Phase",
    "Reason",
    "Reply",
    "boot_clock",
    "check",
    "close_idle",
    "send",
]


@dataclass(frozen=True)
class Call:
    method: str
    url: str
    headers: Mapping[str, str] = field(repr=False)  # they hold secrets, and calls get into logs
    body: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Limits:
    """Seconds throughout. `connect_timeout_s` covers name, connection and handshake together."""

    connect_timeout_s: float
    deadline_s: float  # from `send` being called to the last byte of the answer
    send_by: float | None = None  # on boot_clock(); past it nothing is sent
    body_cap: int = 1_048_576  # bytes, after decompression
    reuse: bool = False  # keep connections of this thread open; only where the downstream dedupes by key
    ca_file: str | None = None
    # Told every address that the host name stands for before any is connected to; raises OSError to refuse it.
    vet: Callable[[str], None] | None = None


@dataclass(frozen=True)
class Reply:
    phase: Phase
    reason: Reason
    status: int | None  # known from Phase.BODY on
    headers: Mapping[str, str]  # names in lower case
    body: bytes  # what arrived of it; decompressed only when complete
    elapsed_ms: int
    detail: str = ""  # the library's own words, cut short

    @property
    def maybe_sent(self) -> bool:
        return self.phase >= Phase.FIRST_BYTE

    @property
    def complete(self) -> bool:
        return self.phase is Phase.DONE


@dataclass
class _Received:
    """What has arrived; filled as it comes, so that a broken call keeps it."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    body: bytearray = field(default_factory=bytearray)


def send(call: Call, limits: Limits) -> Reply:
    """Send `call` at most once and say how far it got.

    Trouble with the network never raises. ValueError: `call` is malformed, nothing was touched. Whatever else
    is raised while it runs (a job's time-out from a signal handler) passes through, the connection closed.
    """
    place, path = _parse(call, limits.ca_file)
    started = boot_clock()
    trace = Trace(
        connect_until=started + limits.connect_timeout_s,
        until=started + limits.deadline_s,
        send_by=limits.send_by,
    )
    received = _Received()
    reason, detail = Reason.OK, ""
    connection: Connection | None = None
    try:
        connection = _connection(place, limits)
        connection.begin(trace)
        _exchange(connection, call, path, limits, received)
        trace.phase = Phase.DONE
    except (Stopped, OSError, HTTPException, HTTPError) as exc:
        cause = trace.trouble or exc
        if is_foreign(cause, trace):
            raise cause from None
        reason, detail = explain(trace, exc), f"{type(cause).__name__}: {cause}"[:300]
    finally:
        if connection is not None:
            _leave(connection, place, keep=limits.reuse and trace.phase is Phase.DONE)
    return Reply(
        phase=trace.phase,
        reason=reason,
        status=received.status,
        headers=received.headers,
        body=bytes(received.body),
        elapsed_ms=round((boot_clock() - started) * 1000),
        detail=detail,
    )


close_idle = idle.close  # those that this thread kept open

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")  # RFC 9110 §5.6.2
_VALUE = re.compile(r"[\t\x20-\x7e]*")
_VISIBLE = re.compile(r"[\x21-\x7e]+")
# Framing and routing are this module's business: a wrong length would cut or join requests.
_OURS = {"connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te", "trailer"}
_OURS |= {"transfer-encoding", "upgrade"}
_DEFAULTS = {"Accept-Encoding": "identity", "User-Agent": "landed"}


def check(call: Call) -> None:
    """Raises ValueError for a call that `send` would refuse; the text names headers, never their values."""
    _parse(call, None)


def _parse(call: Call, ca_file: str | None) -> tuple[Place, str]:
    if not _TOKEN.fullmatch(call.method):
        raise ValueError(f"not an HTTP method: {call.method!r}")
    if not _VISIBLE.fullmatch(call.url):
        raise ValueError("the URL holds spaces, control characters or non-ASCII ones")
    names = [name.lower() for name in call.headers]
    if len(set(names)) < len(names) or _OURS & set(names):
        raise ValueError("a header is given twice, or is one that the transport sets itself")
    for name, value in call.headers.items():
        if not (_TOKEN.fullmatch(name) and _VALUE.fullmatch(value)):
            raise ValueError(f"header {name!r} holds line breaks, control characters or non-ASCII ones")
    parts = urlsplit(call.url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.fragment:
        raise ValueError("the URL needs http or https, a host, and no fragment")
    if parts.username is not None or parts.password is not None:
        raise ValueError("no user name or password in a URL: they would end up in logs")
    parts.hostname.encode("idna")  # UnicodeError, a ValueError, for labels DNS can't carry
    port = (443 if parts.scheme == "https" else 80) if parts.port is None else parts.port
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Place(parts.scheme, parts.hostname, port, ca_file), path


def _connection(place: Place, limits: Limits) -> Connection:
    connection = idle.take(place) if limits.reuse else None
    if connection is None:
        context = tls_context(place.ca_file) if place.scheme == "https" else None
        connection = Connection(place.host, place.port, context, limits.vet)
    return connection


def _leave(connection: Connection, place: Place, *, keep: bool) -> None:
    if keep and connection.sock is not None:  # http.client has closed it already if the peer asked for that
        idle.put(place, connection)
    else:
        connection.close()


def _exchange(connection: Connection, call: Call, path: str, limits: Limits, received: _Received) -> None:
    if connection.sock is None:
        connection.connect()
    given = {name.lower() for name in call.headers}
    headers = {name: value for name, value in _DEFAULTS.items() if name.lower() not in given}
    if not limits.reuse:
        headers["Connection"] = "close"
    headers.update(call.headers)
    connection.request(
        call.method, path, body=call.body, headers=headers, preload_content=False, decode_content=False
    )
    try:
        response = connection.getresponse()
        try:
            _read(response, received, limits.body_cap)
        finally:
            response.close()
    except ValueError as exc:  # http.client's parsers on garbage; our own arguments were checked before
        raise HTTPException(str(exc)) from exc
    _decode(received, limits.body_cap)


def _read(response: BaseHTTPResponse, received: _Received, cap: int) -> None:
    received.status = response.status
    received.headers.update((name.lower(), value) for name, value in response.headers.itermerged())
    while len(received.body) <= cap:
        # Never more than the announced length: what lies beyond belongs to no answer of ours.
        part = response.read1(min(16_384, response.length_remaining or 16_384), decode_content=False)
        if not part:
            break
        received.body += part


def _decode(received: _Received, cap: int) -> None:
    encoding = received.headers.get("content-encoding", "identity").strip().lower()
    plain = bytes(received.body)
    if not plain:
        return
    if encoding in ("gzip", "x-gzip") and len(plain) <= cap:
        unzip = zlib.decompressobj(wbits=31)
        try:
            plain = unzip.decompress(plain, cap + 1)  # a bomb ends here, having cost `cap` bytes
        except zlib.error as exc:
            raise Stopped(Reason.BODY_UNDECODABLE, str(exc)) from exc
        if len(plain) <= cap and (not unzip.eof or unzip.unused_data):
            raise Stopped(Reason.BODY_UNDECODABLE, "the gzip stream is cut, or has something after its end")
    elif encoding not in ("identity", "", "gzip", "x-gzip"):
        raise Stopped(Reason.BODY_UNDECODABLE, f"content coding {encoding[:40]!r} was not asked for")
    received.body[:] = plain[:cap]
    if len(plain) > cap:
        raise Stopped(Reason.BODY_TOO_LARGE, f"more than {cap} bytes")
