"""HTTP/1.1 over one socket: reading a request, writing a head. No more than the sandbox needs (RFC 9112)."""

import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import parse_qsl, unquote, urlsplit

MAX_LINE = 16_384
MAX_HEADERS = 100
MAX_BODY = 1_048_576


class PeerGone(Exception):
    """The peer closed in the middle of a request; there is nobody to answer."""


class Refused(Exception):
    """A request is answered with an error: HTTP status, stable code, a sentence, optionally what is valid."""

    def __init__(self, status: int, code: str, message: str, *, valid: list[str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.valid = valid


@dataclass(frozen=True)
class Request:
    """One request as read. Header names are lower case; a header sent twice is joined with a comma."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    keep_alive: bool


@dataclass(frozen=True)
class Response:
    """An answer before a fault has touched it."""

    status: int
    body: bytes
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass
class Connection:
    """A socket with what was read past the last line. No file object: closing must really close."""

    sock: socket.socket
    buffer: bytearray = field(default_factory=bytearray)

    def read_line(self) -> bytes:
        """The next line without its ending; raises PeerGone at the end of the stream."""
        while (end := self.buffer.find(b"\n")) < 0:
            if len(self.buffer) > MAX_LINE:
                raise Refused(431, "line_too_long", f"a line is longer than {MAX_LINE} bytes")
            self._fill()
        line = bytes(self.buffer[:end])
        del self.buffer[: end + 1]
        return line.removesuffix(b"\r")

    def read_exactly(self, length: int) -> bytes:
        """`length` bytes; raises PeerGone if the stream ends before."""
        while len(self.buffer) < length:
            self._fill()
        data = bytes(self.buffer[:length])
        del self.buffer[:length]
        return data

    def _fill(self) -> None:
        data = self.sock.recv(65_536)
        if not data:
            raise PeerGone
        self.buffer += data


def read_request(connection: Connection) -> Request:
    """Read one request. Raises PeerGone when there is none, Refused when it is not HTTP we speak."""
    request_line = connection.read_line().decode("latin-1")
    try:
        method, target, version = request_line.split(" ")
    except ValueError:
        raise Refused(400, "bad_request_line", "it needs a method, a target and a version") from None
    if version not in ("HTTP/1.0", "HTTP/1.1"):
        raise Refused(505, "version_not_supported", "this service speaks HTTP/1.0 and HTTP/1.1")
    headers = _read_headers(connection)
    parts = urlsplit(target)
    return Request(
        method=method,
        path=unquote(parts.path),
        query=_parse_query(parts.query),
        headers=headers,
        body=_read_body(connection, headers),
        keep_alive=_wants_keep_alive(version, headers),
    )


def _read_headers(connection: Connection) -> dict[str, str]:
    headers: dict[str, str] = {}
    for _ in range(MAX_HEADERS):
        line = connection.read_line().decode("latin-1")
        if not line:
            return headers
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise Refused(400, "bad_header", "a header line needs a name, a colon and a value")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    raise Refused(431, "too_many_headers", f"more than {MAX_HEADERS} header lines")


def _read_body(connection: Connection, headers: Mapping[str, str]) -> bytes:
    if "transfer-encoding" in headers:
        raise Refused(411, "length_required", "send a Content-Length, not a Transfer-Encoding")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise Refused(400, "bad_content_length", "Content-Length is not a number")
    if int(text) > MAX_BODY:
        raise Refused(413, "body_too_large", f"a body may have {MAX_BODY} bytes")
    return connection.read_exactly(int(text))


def _parse_query(text: str) -> dict[str, str]:
    pairs = parse_qsl(text, keep_blank_values=True)
    if len({name for name, _ in pairs}) < len(pairs):
        raise Refused(400, "repeated_parameter", "a query parameter is given twice")
    return dict(pairs)


def _wants_keep_alive(version: str, headers: Mapping[str, str]) -> bool:
    wishes = {wish.strip().lower() for wish in headers.get("connection", "").split(",")}
    return "close" not in wishes if version == "HTTP/1.1" else "keep-alive" in wishes


def json_response(status: int, content: object, *headers: tuple[str, str]) -> Response:
    return Response(status, json.dumps(content).encode(), headers=headers)


def error_response(status: int, code: str, message: str, *headers: tuple[str, str]) -> Response:
    return json_response(status, {"error": {"code": code, "message": message}}, *headers)


def refusal_response(refused: Refused) -> Response:
    error: dict[str, object] = {"code": refused.code, "message": refused.message}
    if refused.valid is not None:
        error["valid"] = refused.valid
    return json_response(refused.status, {"error": error})


def render_head(response: Response, *, length: int | None, keep_alive: bool) -> bytes:
    """Status line and headers with the blank line; `length` None leaves Content-Length out."""
    lines = [f"HTTP/1.1 {response.status} {HTTPStatus(response.status).phrase}"]
    lines.append(f"Content-Type: {response.content_type}")
    lines += [f"{name}: {value}" for name, value in response.headers]
    if length is not None:
        lines.append(f"Content-Length: {length}")
    lines.append(f"Connection: {'keep-alive' if keep_alive else 'close'}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
