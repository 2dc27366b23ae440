"""Webhooks: signed as Standard Webhooks say, retried, never in the way of an answer."""

import base64
import hashlib
import hmac
import json
import queue
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from sandbox_client import Sandbox

KEY = b"0123456789abcdef01234567"
SECRET = "whsec_" + base64.b64encode(KEY).decode()


@dataclass(frozen=True)
class Delivery:
    headers: dict[str, str]
    body: bytes


class Receiver(ThreadingHTTPServer):
    """Keeps what it receives and answers the statuses asked for, then 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.deliveries: queue.Queue[Delivery] = queue.Queue()
        self.statuses: list[int] = []
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hooks?for=tests"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        fields = {name.lower(): value for name, value in self.headers.items()}
        assert self.path == "/hooks?for=tests"
        self.send_response(self.server.statuses.pop(0) if self.server.statuses else 204)
        self.send_header("Content-Length", "0")
        self.end_headers()
        self.server.deliveries.put(Delivery(fields, body))

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


def test_a_webhook_is_signed_and_carries_the_entry(own_sandbox: Sandbox, receiver: Receiver, order: str) -> None:
    own_sandbox.configure(webhook_url=receiver.url, webhook_secret=SECRET)
    own_sandbox.refund(order)
    delivery = receiver.deliveries.get(timeout=3)
    event_id, timestamp = delivery.headers["webhook-id"], delivery.headers["webhook-timestamp"]
    signed = f"{event_id}.{timestamp}.".encode() + delivery.body
    expected = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert delivery.headers["webhook-signature"] == f"v1,{expected}"
    assert abs(int(timestamp) - time.time()) < 5
    content = json.loads(delivery.body)
    assert content["type"] == "refund.created"
    assert content["data"] == own_sandbox.booked(order)[0]


def test_a_refused_webhook_is_sent_again_with_the_same_id(
    own_sandbox: Sandbox, receiver: Receiver, order: str
) -> None:
    receiver.statuses = [500, 302]
    own_sandbox.configure(webhook_url=receiver.url, webhook_secret=SECRET)
    own_sandbox.refund(order)
    first, second, third = (receiver.deliveries.get(timeout=4) for _ in range(3))
    assert first.headers["webhook-id"] == second.headers["webhook-id"] == third.headers["webhook-id"]
    assert first.body == second.body == third.body
    with pytest.raises(queue.Empty):
        receiver.deliveries.get(timeout=0.3)


def test_a_lost_response_still_sends_its_webhook(own_sandbox: Sandbox, receiver: Receiver, order: str) -> None:
    own_sandbox.configure(webhook_url=receiver.url, webhook_secret=SECRET)
    own_sandbox.order_fault(order, "lose_response")
    with own_sandbox.send_raw_refund(order) as sock:
        assert sock.recv(1) == b""
    assert json.loads(receiver.deliveries.get(timeout=3).body)["data"]["order"] == order
    own_sandbox.refund(order)
    with pytest.raises(queue.Empty):
        receiver.deliveries.get(timeout=0.3)


def test_a_pending_refund_that_fails_is_announced_when_it_fails(
    own_sandbox: Sandbox, receiver: Receiver, order: str
) -> None:
    own_sandbox.configure(webhook_url=receiver.url, webhook_secret=SECRET)
    own_sandbox.order_fault(order, "pending_then_failed", seconds=0.4)
    began = time.monotonic()
    own_sandbox.refund(order)
    events = [json.loads(receiver.deliveries.get(timeout=3).body) for _ in range(2)]
    assert time.monotonic() - began > 0.35
    assert [(event["type"], event["data"]["status"]) for event in events] == [
        ("refund.created", "pending"),
        ("refund.failed", "failed"),
    ]


def test_an_entry_by_hand_is_announced(own_sandbox: Sandbox, receiver: Receiver, order: str) -> None:
    own_sandbox.configure(webhook_url=receiver.url, webhook_secret=SECRET)
    body = {"order": order, "amount_minor": 700, "currency": "EUR", "type": "reversal"}
    own_sandbox.call("POST", "/_control/entries", body)
    assert json.loads(receiver.deliveries.get(timeout=3).body)["type"] == "reversal.created"


def test_a_receiver_that_never_answers_holds_up_no_answer(own_sandbox: Sandbox, order: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        own_sandbox.configure(webhook_url=f"http://127.0.0.1:{deaf.getsockname()[1]}/", webhook_secret=SECRET)
        began = time.monotonic()
        for number in range(3):
            assert own_sandbox.refund(order, key=f"{order}-{number}").status == 201
        assert time.monotonic() - began < 1
