"""How far a call got and why it ended there: the words for it, and the notes they are read from."""

from __future__ import annotations

import ssl
import time
from collections.abc import Mapping
from enum import StrEnum

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_clock() -> float:
    """Seconds since boot, counting on while the machine sleeps where the system can tell (Linux)."""
    return time.clock_gettime(_BOOT)


class Phase(StrEnum):
    """How far a call got. Ordered by time, not by spelling."""

    START = "start"  # nothing happened yet
    RESOLVE = "resolve"  # the host name is being looked up
    CONNECT = "connect"  # a TCP connection is being made, or stands
    HANDSHAKE = "handshake"  # TLS is being agreed, or stands
    FIRST_BYTE = "first_byte"  # the first byte of the request is about to be handed to the socket, or was
    SENT = "sent"  # the whole request was handed to the socket
    HEADERS = "headers"  # an answer has begun
    BODY = "body"  # status and headers are known
    DONE = "done"  # the answer is whole

    @property
    def rank(self) -> int:
        return _ORDER[self]

    # StrEnum would compare alphabetically, and "body" < "first_byte" would make a sent request look unsent.
    def __lt__(self, other: str) -> bool:
        return self.rank < Phase(other).rank

    def __le__(self, other: str) -> bool:
        return self.rank <= Phase(other).rank

    def __gt__(self, other: str) -> bool:
        return self.rank > Phase(other).rank

    def __ge__(self, other: str) -> bool:
        return self.rank >= Phase(other).rank


_ORDER = {phase: rank for rank, phase in enumerate(Phase)}


class Trace:
    """What one call did so far. Its connection and socket write here; `transport.send` reads."""

    def __init__(self, *, connect_until: float, until: float, send_by: float | None) -> None:
        self.connect_until = min(connect_until, until)
        self.until = until
        self.send_by = send_by
        self.phase = Phase.START
        self.trouble: OSError | None = None  # what the socket itself raised, before libraries wrap it
        self.ended = False  # the peer ended its stream

    def remaining(self) -> float:
        return (self.until if self.phase >= Phase.FIRST_BYTE else self.connect_until) - boot_clock()

    def left(self) -> float:
        """Seconds the next socket operation may take; TimeoutError when there are none."""
        remaining = self.remaining()
        if remaining <= 0:
            raise TimeoutError("the call's time is over")
        return remaining


class Reason(StrEnum):
    """Why a call ended where it did; the meaning of each stands in REASONS."""

    OK = "ok"
    DNS = "dns"
    DNS_TIMEOUT = "dns_timeout"
    CONNECT_REFUSED = "connect_refused"
    CONNECT_TIMEOUT = "connect_timeout"
    CONNECT_FAILED = "connect_failed"
    TLS_SETUP = "tls_setup"
    TLS_TIMEOUT = "tls_timeout"
    TLS_CERTIFICATE = "tls_certificate"
    TLS_FAILED = "tls_failed"
    TOO_LATE = "too_late"
    SEND_TIMEOUT = "send_timeout"
    READ_TIMEOUT = "read_timeout"
    DEADLINE = "deadline"
    RESET = "reset"
    CLOSED = "closed"
    TLS_BROKEN = "tls_broken"
    CUT_BODY = "cut_body"
    BODY_UNDECODABLE = "body_undecodable"
    BODY_TOO_LARGE = "body_too_large"
    BAD_RESPONSE = "bad_response"


REASONS: Mapping[Reason, str] = {
    Reason.OK: "The answer arrived whole.",
    Reason.DNS: "The host name could not be resolved; nothing was sent.",
    Reason.DNS_TIMEOUT: "The host name was not resolved in time; nothing was sent.",
    Reason.CONNECT_REFUSED: "The host refused the connection; nothing was sent.",
    Reason.CONNECT_TIMEOUT: "No connection came about in time; nothing was sent.",
    Reason.CONNECT_FAILED: "No connection could be made; nothing was sent.",
    Reason.TLS_SETUP: "The file with trusted certificates could not be used; nothing was sent.",
    Reason.TLS_TIMEOUT: "The TLS handshake did not end in time; nothing was sent.",
    Reason.TLS_CERTIFICATE: "The host's certificate is not trusted; nothing was sent.",
    Reason.TLS_FAILED: "The TLS handshake broke off; nothing was sent.",
    Reason.TOO_LATE: "The send-by time had passed before the first byte; nothing was sent.",
    Reason.SEND_TIMEOUT: "The host did not take the whole request in time; part of it was sent.",
    Reason.READ_TIMEOUT: "The request was sent and no answer began in time.",
    Reason.DEADLINE: "An answer began and was not whole in time.",
    Reason.RESET: "The connection broke after the request was sent in part or whole.",
    Reason.CLOSED: "The host closed the connection before a whole answer had begun.",
    Reason.TLS_BROKEN: "The encrypted stream could not be read after the request was sent.",
    Reason.CUT_BODY: "The answer's body ended too early.",
    Reason.BODY_UNDECODABLE: "The answer's body could not be decompressed.",
    Reason.BODY_TOO_LARGE: "The answer's body is larger than allowed.",
    Reason.BAD_RESPONSE: "What came back is not a valid HTTP answer.",
}


class Stopped(Exception):
    """This side ends the call, for `reason`."""

    def __init__(self, reason: Reason, text: str) -> None:
        super().__init__(text)
        self.reason = reason


def is_foreign(cause: BaseException, trace: Trace) -> bool:
    """A TimeoutError while there is time, and not from the kernel: raised into us by a signal handler."""
    return isinstance(cause, TimeoutError) and cause.errno is None and trace.remaining() > 0.05


_TIMED_OUT = {
    Phase.START: Reason.CONNECT_TIMEOUT,
    Phase.RESOLVE: Reason.DNS_TIMEOUT,
    Phase.CONNECT: Reason.CONNECT_TIMEOUT,
    Phase.HANDSHAKE: Reason.TLS_TIMEOUT,
    Phase.FIRST_BYTE: Reason.SEND_TIMEOUT,
    Phase.SENT: Reason.READ_TIMEOUT,
    Phase.HEADERS: Reason.DEADLINE,
    Phase.BODY: Reason.DEADLINE,
}
_NOT_SENT = {
    Phase.START: Reason.TLS_SETUP,
    Phase.RESOLVE: Reason.DNS,
    Phase.CONNECT: Reason.CONNECT_FAILED,
    Phase.HANDSHAKE: Reason.TLS_FAILED,
}


def explain(trace: Trace, exc: Exception) -> Reason:
    """A name for what happened: the phase decides, the cause only refines."""
    cause = trace.trouble or exc
    if isinstance(exc, Stopped):
        return exc.reason
    if isinstance(cause, TimeoutError):
        return _TIMED_OUT[trace.phase]
    return _before(trace, cause) if trace.phase < Phase.FIRST_BYTE else _after(trace, cause)


def _before(trace: Trace, cause: Exception) -> Reason:
    if isinstance(cause, ConnectionRefusedError):
        return Reason.CONNECT_REFUSED
    if isinstance(cause, ssl.SSLCertVerificationError):
        return Reason.TLS_CERTIFICATE
    return _NOT_SENT[trace.phase]


def _after(trace: Trace, cause: Exception) -> Reason:
    if trace.ended:
        return Reason.CUT_BODY if trace.phase is Phase.BODY else Reason.CLOSED
    if isinstance(cause, ssl.SSLError):
        return Reason.TLS_BROKEN
    return Reason.RESET if isinstance(cause, OSError) else Reason.BAD_RESPONSE
