"""Refunds without faults: validation, dedupe by key, what is recorded."""

import time
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime

import pytest
from sandbox_client import Sandbox


def test_a_refund_is_booked_and_answered_in_full(sandbox: Sandbox, order: str) -> None:
    reply = sandbox.refund(order, metadata={"run": "r-17"})
    assert reply.status == 201
    assert list(reply.json) == [
        "id", "order", "amount_minor", "currency", "status", "idempotency_key", "created",
    ]  # fmt: skip
    assert reply.json["status"] == "succeeded"
    assert abs(datetime.fromisoformat(reply.json["created"]).timestamp() - time.time()) < 5
    assert sandbox.call("GET", f"/v1/refunds/{reply.json['id']}").json == reply.json
    [entry] = sandbox.ledger(order=order).json["data"]
    assert entry == {**reply.json, "type": "refund", "metadata": {"run": "r-17"}}


def test_an_unknown_refund_is_not_found(sandbox: Sandbox) -> None:
    assert sandbox.call("GET", "/v1/refunds/re_none").status == 404


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"order": ""}, "invalid_field"),
        ({"order": 7}, "invalid_field"),
        ({"order": "\ud800"}, "invalid_field"),
        ({"amount_minor": 0}, "invalid_field"),
        ({"amount_minor": -1}, "invalid_field"),
        ({"amount_minor": 50.0}, "invalid_field"),
        ({"amount_minor": "50"}, "invalid_field"),
        ({"amount_minor": True}, "invalid_field"),
        ({"amount_minor": 10**30}, "invalid_field"),
        ({"currency": "eur"}, "invalid_field"),
        ({"currency": "EURO"}, "invalid_field"),
        ({"currency": "EU\n"}, "invalid_field"),
        ({"currency": None}, "invalid_field"),
        ({"metadata": []}, "invalid_field"),
        ({"surprise": 1}, "unknown_field"),
    ],
)
def test_a_wrong_field_is_refused_by_name(sandbox: Sandbox, fields: dict[str, object], code: str) -> None:
    body = {"order": "order-invalid", "amount_minor": 5000, "currency": "EUR", **fields}
    reply = sandbox.call("POST", "/v1/refunds", body, {"Idempotency-Key": "key-invalid"})
    assert (reply.status, reply.json["error"]["code"]) == (422, code)
    assert next(iter(fields)) in reply.json["error"]["message"]


@pytest.mark.parametrize("name", ["order", "amount_minor", "currency"])
def test_a_missing_field_is_refused_by_name(sandbox: Sandbox, name: str) -> None:
    body = {"order": "order-invalid", "amount_minor": 5000, "currency": "EUR"}
    del body[name]
    reply = sandbox.call("POST", "/v1/refunds", body, {"Idempotency-Key": "key-invalid"})
    assert (reply.status, reply.json["error"]["code"]) == (422, "missing_field")
    assert name in reply.json["error"]["message"]


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"order": NaN}', b'{"order": "a", "order": "b"}', b"\xff"])
def test_what_is_not_a_json_object_is_refused(sandbox: Sandbox, body: bytes) -> None:
    reply = sandbox.call("POST", "/v1/refunds", body, {"Idempotency-Key": "key-invalid"})
    assert (reply.status, reply.json["error"]["code"]) == (400, "bad_json")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({}, "missing_idempotency_key"),
        ({"Idempotency-Key": ""}, "missing_idempotency_key"),
        ({"Idempotency-Key": "two words"}, "bad_idempotency_key"),
        ({"Idempotency-Key": "k" * 256}, "bad_idempotency_key"),
    ],
)
def test_a_key_is_required(sandbox: Sandbox, order: str, headers: dict[str, str], code: str) -> None:
    body = {"order": order, "amount_minor": 5000, "currency": "EUR"}
    reply = sandbox.call("POST", "/v1/refunds", body, headers)
    assert (reply.status, reply.json["error"]["code"]) == (400, code)
    assert sandbox.booked(order) == []
    assert [seen["status"] for seen in sandbox.requests(order)] == [400]


def test_a_quoted_key_is_the_same_key(sandbox: Sandbox, order: str) -> None:
    first, second = sandbox.refund(order, key=f'"{order}"'), sandbox.refund(order, key=order)
    assert first.json["idempotency_key"] == order
    assert second.headers["idempotent-replayed"] == "true"


def test_the_same_key_and_body_replay_the_first_answer(sandbox: Sandbox, order: str) -> None:
    first = sandbox.refund(order, metadata={"a": 1, "b": 2})
    second = sandbox.refund(order, metadata={"b": 2, "a": 1})
    assert (second.status, second.body) == (first.status, first.body)
    assert "idempotent-replayed" not in first.headers
    assert second.headers["idempotent-replayed"] == "true"
    assert len(sandbox.booked(order)) == 1


@pytest.mark.parametrize("fields", [{"amount_minor": 5001}, {"currency": "USD"}, {"metadata": {"a": 1}}])
def test_the_same_key_with_another_body_is_refused(sandbox: Sandbox, order: str, fields: dict[str, object]) -> None:
    sandbox.refund(order)
    body = {"order": order, "amount_minor": 5000, "currency": "EUR", **fields}
    reply = sandbox.call("POST", "/v1/refunds", body, {"Idempotency-Key": f"key-{order}"})
    assert (reply.status, reply.json["error"]["code"]) == (422, "key_reused")
    assert len(sandbox.booked(order)) == 1


def test_without_dedupe_every_post_books(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.configure(dedupes=False)
    ids = {own_sandbox.refund(order).json["id"] for _ in range(3)}
    assert ids == {entry["id"] for entry in own_sandbox.booked(order)}
    assert len(ids) == 3


def test_fifty_concurrent_posts_with_one_key_book_once(sandbox: Sandbox, order: str) -> None:
    with ThreadPoolExecutor(50) as pool:
        replies = list(pool.map(lambda _: sandbox.refund(order), range(50)))
    assert len(sandbox.booked(order)) == 1
    assert {reply.status for reply in replies} <= {201, 409}
    assert sum(reply.status == 201 and "idempotent-replayed" not in reply.headers for reply in replies) == 1
    assert len(sandbox.requests(order)) == 50


def test_a_key_still_running_is_a_conflict(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.configure(latency_ms=400)
    with ThreadPoolExecutor(2) as pool:
        replies = list(pool.map(lambda _: own_sandbox.refund(order), range(2)))
    assert sorted(reply.status for reply in replies) == [201, 409]
    assert len(own_sandbox.booked(order)) == 1


def test_latency_delays_posts_and_looks(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.configure(latency_ms=200)
    began = time.monotonic()
    own_sandbox.refund(order)
    assert time.monotonic() - began >= 0.2
    own_sandbox.ledger(order=order)
    assert time.monotonic() - began >= 0.4


def test_every_post_is_recorded_with_time_key_and_result(sandbox: Sandbox, order: str) -> None:
    before = time.time()
    sandbox.refund(order)
    sandbox.refund(order, amount_minor="much")
    first, second = sandbox.requests(order)
    assert first == {
        "order": order,
        "idempotency_key": f"key-{order}",
        "body": {"order": order, "amount_minor": 5000, "currency": "EUR"},
        "at": first["at"],
        "at_iso": first["at_iso"],
        "fault": None,
        "entry_id": sandbox.booked(order)[0]["id"],
        "replayed": False,
        "status": 201,
    }
    assert before <= first["at"] <= second["at"] <= time.time()
    assert datetime.fromisoformat(first["at_iso"]).timestamp() == pytest.approx(first["at"], abs=1e-5)
    assert (second["status"], second["entry_id"]) == (422, None)
