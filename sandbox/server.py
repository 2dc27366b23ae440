"""One thread per connection: read a request, route it, let the answer leave as the fault says."""

import contextlib
import re
import socket
import sys
import traceback
from collections.abc import Callable

from sandbox import control, ledger, refunds
from sandbox.delivery import send_whole
from sandbox.service import Answer, Service
from sandbox.wire import (
    Connection,
    PeerGone,
    Refused,
    Request,
    error_response,
    json_response,
    read_request,
    refusal_response,
)

IDLE_TIMEOUT_S = 300

Handler = Callable[[Service, Request], Answer]


def get_health(service: Service, request: Request) -> Answer:
    return Answer(json_response(200, {"status": "ok"}))


ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("POST", r"/v1/refunds", refunds.post_refund),
    ("GET", r"/v1/refunds/[^/]+", refunds.get_refund),
    ("GET", r"/v1/moved", refunds.get_moved),
    ("GET", r"/v1/ledger", ledger.get_ledger),
    ("POST", r"/_control/faults", control.post_fault),
    ("GET", r"/_control/faults", control.get_faults),
    ("DELETE", r"/_control/faults", control.delete_faults),
    ("POST", r"/_control/config", control.post_config),
    ("GET", r"/_control/config", control.get_config),
    ("GET", r"/_control/requests", control.get_requests),
    ("POST", r"/_control/entries", control.post_entry),
    ("GET", r"/_control/ledger", control.get_true_ledger),
    ("POST", r"/_control/reset", control.post_reset),
    ("GET", r"/healthz", get_health),
)


def serve_connection(service: Service, sock: socket.socket) -> None:
    """Answer requests on one connection until either side has had enough."""
    with sock, contextlib.suppress(OSError, PeerGone):
        sock.settimeout(IDLE_TIMEOUT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection = Connection(sock)
        while _serve_request(service, connection):
            pass


def _serve_request(service: Service, connection: Connection) -> bool:
    """Answer one request; returns whether another may follow."""
    try:
        request = read_request(connection)
    except Refused as refused:
        return send_whole(connection.sock, refusal_response(refused), 0, False)
    answer = respond(service, request)
    return answer.deliver(connection.sock, answer.response, answer.seconds, request.keep_alive)


def respond(service: Service, request: Request) -> Answer:
    try:
        return _find_handler(request)(service, request)
    except Refused as refused:
        return Answer(refusal_response(refused))
    except Exception:  # noqa: BLE001
        # Our own bug must not pass for a fault that somebody ordered.
        traceback.print_exc(file=sys.stderr)
        return Answer(error_response(500, "sandbox_bug", "the sandbox has a bug; see its stderr"))


def _find_handler(request: Request) -> Handler:
    fitting = {method: handler for method, path, handler in ROUTES if re.fullmatch(path, request.path)}
    if not fitting:
        raise Refused(404, "not_found", f"there is nothing at {request.path}")
    if request.method not in fitting:
        raise Refused(405, "method_not_allowed", f"{request.path} takes {', '.join(fitting)}")
    return fitting[request.method]
