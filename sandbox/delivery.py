"""How an answer leaves the socket: whole, late, in crumbs, in part or not at all.

Every function takes the socket, the answer, the fault's seconds and whether the peer keeps the connection
open, and returns whether another request may follow on this connection.
"""

import socket
import struct
import time
from collections.abc import Callable

from sandbox.wire import Response, render_head

Deliver = Callable[[socket.socket, Response, float, bool], bool]


def send_whole(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    head = render_head(response, length=len(response.body), keep_alive=keep_alive)
    sock.sendall(head + response.body)
    return keep_alive


def close_without_a_byte(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    return False


def reset(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    """A linger time of zero makes close() send RST instead of FIN (socket(7))."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
    return False


def stay_silent(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    """Hold the connection open without a byte until the peer closes or `seconds` pass."""
    peer_left_within(sock, seconds)
    return False


def trickle_headers(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    """Head and body, one byte every `seconds`."""
    head = render_head(response, length=len(response.body), keep_alive=False)
    _trickle(sock, head + response.body, seconds)
    return False


def trickle_body(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    """The head at once, the body one byte every `seconds`."""
    sock.sendall(render_head(response, length=len(response.body), keep_alive=False))
    _trickle(sock, response.body, seconds)
    return False


def cut_body(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    """Announce the whole length, send half of it, close."""
    head = render_head(response, length=len(response.body), keep_alive=keep_alive)
    sock.sendall(head + _half(response.body))
    return False


def cut_without_length(sock: socket.socket, response: Response, seconds: float, keep_alive: bool) -> bool:
    """No length, so that the close looks like the regular end of the body: only the JSON shows the cut."""
    sock.sendall(render_head(response, length=None, keep_alive=False) + _half(response.body))
    return False


def _half(body: bytes) -> bytes:
    return body[: len(body) // 2]


def _trickle(sock: socket.socket, data: bytes, seconds: float) -> None:
    for position in range(len(data)):
        sock.sendall(data[position : position + 1])
        if peer_left_within(sock, seconds):
            return


def peer_left_within(sock: socket.socket, seconds: float) -> bool:
    """Wait `seconds`, or less if the peer closes; what it sends meanwhile is thrown away."""
    deadline = time.monotonic() + seconds
    before = sock.gettimeout()
    try:
        while (left := deadline - time.monotonic()) > 0:
            sock.settimeout(left)
            if not sock.recv(65_536):
                return True
    except TimeoutError:
        pass
    except OSError:
        return True
    finally:
        sock.settimeout(before)
    return False
