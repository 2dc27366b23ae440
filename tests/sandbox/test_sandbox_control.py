"""Setting the service up, and its life as a process."""

import http.client
import json
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from sandbox_client import ROOT, Sandbox, read_until_close, start_sandbox


def test_an_unknown_fault_is_refused_with_the_valid_ones(sandbox: Sandbox, order: str) -> None:
    reply = sandbox.call("POST", "/_control/faults", {"order": order, "fault": "earthquake"})
    assert (reply.status, reply.json["error"]["code"]) == (422, "unknown_fault")
    assert "lose_response" in reply.json["error"]["valid"]


@pytest.mark.parametrize(
    "fields",
    [
        {"order": "o", "fault": "slow", "time": 1},
        {"order": "o", "fault": "slow", "times": 0},
        {"order": "o", "fault": "slow", "times": 1.5},
        {"order": "o", "fault": "slow", "seconds": -1},
        {"order": "o", "fault": "slow", "seconds": "1"},
        {"order": "o", "fault": "reject_422", "seconds": 1},
        {"order": 5, "fault": "slow"},
        {"fault": "slow"},
        {"order": "o"},
        {"order": "o", "fault": "refuse_connection"},
        {"times": 2, "fault": "refuse_connection"},
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(sandbox: Sandbox, fields: dict[str, object]) -> None:
    assert sandbox.call("POST", "/_control/faults", fields).status == 422


def test_ordered_faults_are_listed_until_used_up(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "reject_422", times=2)
    sandbox.refund(order)

    def waiting() -> list[dict[str, object]]:
        data = sandbox.call("GET", "/_control/faults").json["data"]
        return [fault for fault in data if fault["order"] == order]

    assert waiting() == [{"order": order, "fault": "reject_422", "seconds": None, "times": 1}]
    sandbox.refund(order)
    assert waiting() == []


def test_faults_taken_back_hit_nobody_and_those_of_other_orders_stay(sandbox: Sandbox, order: str) -> None:
    other = f"{order}-other"
    sandbox.order_fault(order, "reject_422", times=2)
    sandbox.order_fault(order, "ledger_error", times=1_000)
    sandbox.order_fault(other, "reject_422")
    assert sandbox.call("DELETE", f"/_control/faults?order={order}").json == {"order": order, "taken_back": 2}
    assert sandbox.refund(order).status == 201
    assert sandbox.refund(other).status == 422
    assert sandbox.call("DELETE", f"/_control/faults?order={order}").json["taken_back"] == 0


def test_faults_are_taken_back_by_order_only(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "reject_422")
    reply = sandbox.call("DELETE", "/_control/faults")
    assert (reply.status, reply.json["error"]["code"]) == (422, "missing_field")
    assert sandbox.refund(order).status == 422


def test_config_changes_only_what_is_given(own_sandbox: Sandbox) -> None:
    own_sandbox.configure(ledger_lag_s=2.5)
    own_sandbox.configure(page_size=7)
    assert own_sandbox.call("GET", "/_control/config").json == {
        "dedupes": True, "ledger_lag_s": 2.5, "latency_ms": 0, "page_size": 7,
        "webhook_url": None, "webhook_secret": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "fields",
    [
        {"dedupe": True},
        {"dedupes": "no"},
        {"ledger_lag_s": -1},
        {"latency_ms": 0.5},
        {"page_size": 0},
        {"webhook_secret": "secret"},
        {"webhook_secret": "whsec_"},
        {"webhook_secret": "whsec_%%"},
        {"webhook_url": "http://127.0.0.1:1/"},
    ],
)
def test_a_config_that_makes_no_sense_changes_nothing(sandbox: Sandbox, fields: dict[str, object]) -> None:
    before = sandbox.call("GET", "/_control/config").json
    reply = sandbox.call("POST", "/_control/config", {"page_size": 50, **fields})
    assert reply.status == 422
    if reply.json["error"]["code"] == "unknown_field":
        assert reply.json["error"]["valid"] == list(before)
    assert sandbox.call("GET", "/_control/config").json == before


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1/",
        "http://example.com/",
        "https://127.0.0.1/",
        "http://127.0.0.1.example.com/",
        "http://example.com@127.0.0.1/",
        "http://127.0.0.1:port/",
        "http://0.0.0.0/",
        "//127.0.0.1/",
        7,
    ],
)
def test_webhooks_go_to_loopback_only(sandbox: Sandbox, url: object) -> None:
    fields = {"webhook_url": url, "webhook_secret": "whsec_c2VjcmV0"}
    assert sandbox.call("POST", "/_control/config", fields).status == 422


def test_reset_forgets_everything(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.refund(order)
    own_sandbox.order_fault(order, "reject_422")
    own_sandbox.configure(page_size=3)
    assert own_sandbox.call("POST", "/_control/reset").json == {"reset": True}
    assert own_sandbox.booked(order) == own_sandbox.requests(order) == []
    assert own_sandbox.call("GET", "/_control/config").json["page_size"] == 100
    reply = own_sandbox.refund(order)
    assert reply.status == 201
    assert "idempotent-replayed" not in reply.headers


def test_health_and_unknown_places(sandbox: Sandbox) -> None:
    assert sandbox.call("GET", "/healthz").status == 200
    assert sandbox.call("GET", "/v2/refunds").status == 404
    assert sandbox.call("DELETE", "/v1/ledger").status == 405
    assert sandbox.call("GET", "/_control/requests?ordre=1").status == 422


def test_one_connection_carries_many_requests(sandbox: Sandbox, order: str) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", sandbox.port, timeout=5)
    connection.connect()
    sock = connection.sock
    for number in range(3):
        body = json.dumps({"order": order, "amount_minor": 1, "currency": "EUR"})
        connection.request("POST", "/v1/refunds", body, {"Idempotency-Key": f"{order}-{number}"})
        response = connection.getresponse()
        response.read()
        assert response.status == 201
        assert connection.sock is sock
    connection.close()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", b"400"),
        (b"GET /healthz HTTP/2.0\r\n\r\n", b"505"),
        (b"POST /v1/refunds HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n", b"411"),
        (b"POST /v1/refunds HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"400"),
        (b"POST /v1/refunds HTTP/1.1\r\nContent-Length: 99999999\r\n\r\n", b"413"),
        (b"GET /healthz HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n", b"200"),
    ],
)
def test_odd_requests_are_answered_and_the_connection_closed(sandbox: Sandbox, data: bytes, status: bytes) -> None:
    with socket.create_connection(("127.0.0.1", sandbox.port), timeout=5) as sock:
        sock.sendall(data)
        assert read_until_close(sock).split(b" ")[1] == status


def test_a_request_cut_off_by_its_sender_books_nothing(sandbox: Sandbox, order: str) -> None:
    with socket.create_connection(("127.0.0.1", sandbox.port), timeout=5) as sock:
        sock.sendall(b"POST /v1/refunds HTTP/1.1\r\nIdempotency-Key: k\r\nContent-Length: 90\r\n\r\n{")
        sock.shutdown(socket.SHUT_WR)
        assert read_until_close(sock) == b""
    assert sandbox.requests(order) == []


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restart_keeps_ledger_keys_requests_faults_and_config(
    tmp_path: Path, order: str, number: signal.Signals
) -> None:
    books = str(tmp_path / "books.sqlite3")
    sandbox = start_sandbox("--books", books)
    try:
        sandbox.configure(page_size=9)
        sandbox.order_fault(order, "lose_response")
        sandbox.order_fault(order, "reject_422", times=2)
        with pytest.raises(http.client.RemoteDisconnected):
            sandbox.refund(order)
        sandbox.process.send_signal(number)
        sandbox.process.wait(timeout=5)
        sandbox = start_sandbox("--books", books, "--port", str(sandbox.port))
        assert len(sandbox.booked(order)) == len(sandbox.requests(order)) == 1
        assert sandbox.call("GET", "/_control/config").json["page_size"] == 9
        assert [sandbox.refund(order).status for _ in range(2)] == [422, 422]
        reply = sandbox.refund(order)
        assert (reply.status, reply.headers["idempotent-replayed"]) == (201, "true")
        assert len(sandbox.booked(order)) == 1
    finally:
        sandbox.process.kill()
        sandbox.process.wait()


def test_sigterm_ends_it_at_once_whatever_is_running(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.order_fault(order, "silent")
    own_sandbox.order_fault(f"{order}-slow", "slow")
    with own_sandbox.send_raw_refund(order) as silent, own_sandbox.send_raw_refund(f"{order}-slow"):
        while not (own_sandbox.booked(order) and own_sandbox.booked(f"{order}-slow")):
            time.sleep(0.01)
        began = time.monotonic()
        assert own_sandbox.stop() == 0
        assert time.monotonic() - began < 1
        assert silent.recv(1) == b""


def test_it_listens_on_loopback_only(sandbox: Sandbox) -> None:
    """127.0.0.2 is loopback too, but not the address that the service binds."""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.2", sandbox.port), timeout=1)


def test_a_taken_port_is_said_plainly(sandbox: Sandbox) -> None:
    command = [sys.executable, "-m", "sandbox", "--port", str(sandbox.port)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=10, check=False)
    assert ended.returncode == 1
    assert "cannot start" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_it_imports_only_itself_and_the_standard_library() -> None:
    code = (
        "import sys, pathlib; before = set(sys.modules)\n"
        "import sandbox.__main__\n"
        "names = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(names - sys.stdlib_module_names - {'sandbox'}))"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert printed.stdout.strip() == "[]"
