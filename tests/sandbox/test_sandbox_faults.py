"""Every fault: what it books, what leaves the socket, how often it hits."""

import gzip
import http.client
import json
import socket
import time
import zlib

import pytest
import requests
from sandbox_client import Sandbox, read_for, read_until_close

BOOKING = [
    "lose_response", "reset", "silent", "slow", "trickle_headers", "trickle_body", "cut_body",
    "cut_without_length", "bad_gzip", "html_200", "wrong_amount_200", "error_500_booked", "error_504_booked",
    "pending", "pending_then_failed",
]  # fmt: skip
NOT_BOOKING = [
    "error_500_not_booked", "reject_422", "reject_401", "conflict_409", "too_many_429", "redirect_307",
    "redirect_302", "already_refunded_400",
]  # fmt: skip
ELSEWHERE = ["ledger_error", "ledger_page_2_error", "refuse_connection"]


def test_these_tests_know_every_fault(sandbox: Sandbox) -> None:
    valid = sandbox.call("GET", "/_control/faults").json["valid"]
    assert sorted(valid) == sorted(BOOKING + NOT_BOOKING + ELSEWHERE)


@pytest.mark.parametrize("fault", BOOKING)
def test_fault_books_before_the_peer_can_see_anything(sandbox: Sandbox, order: str, fault: str) -> None:
    sandbox.order_fault(order, fault)
    with sandbox.send_raw_refund(order) as sock:
        deadline = time.monotonic() + 2
        while not sandbox.booked(order) and time.monotonic() < deadline:
            time.sleep(0.01)
        [entry] = sandbox.booked(order)
        sock.close()
    assert entry["amount_minor"] == 5000
    assert entry["idempotency_key"] == f"key-{order}"
    [seen] = sandbox.requests(order)
    assert (seen["fault"], seen["entry_id"]) == (fault, entry["id"])


@pytest.mark.parametrize("fault", NOT_BOOKING)
def test_fault_leaves_the_ledger_alone(sandbox: Sandbox, order: str, fault: str) -> None:
    sandbox.order_fault(order, fault)
    status = sandbox.refund(order).status
    assert sandbox.booked(order) == []
    assert sandbox.ledger(order=order).json == {"data": [], "has_more": False}
    [seen] = sandbox.requests(order)
    assert (seen["fault"], seen["entry_id"], seen["status"]) == (fault, None, status)


def test_lose_response_books_once_and_closes_without_a_byte(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "lose_response")
    with sandbox.send_raw_refund(order) as sock:
        assert read_until_close(sock) == b""
    assert len(sandbox.booked(order)) == 1
    assert sandbox.requests(order)[0]["status"] is None
    replay = sandbox.refund(order)
    assert (replay.status, replay.headers["idempotent-replayed"]) == (201, "true")
    assert len(sandbox.booked(order)) == 1


def test_reset_books_and_resets_the_connection(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "reset")
    with sandbox.send_raw_refund(order) as sock, pytest.raises(ConnectionResetError):
        sock.recv(1)
    assert len(sandbox.booked(order)) == 1
    assert sandbox.requests(order)[0]["status"] is None


def test_silent_sends_nothing_and_keeps_the_connection(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "silent")
    with sandbox.send_raw_refund(order) as sock:
        assert read_for(sock, 0.4) == b""
    assert sandbox.requests(order)[0]["status"] is None
    assert sandbox.refund(order).headers["idempotent-replayed"] == "true"


def test_silent_ends_after_its_seconds(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "silent", seconds=0.2)
    with sandbox.send_raw_refund(order) as sock:
        assert read_until_close(sock) == b""


def test_slow_answers_rightly_after_its_seconds(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "slow", seconds=0.5)
    began = time.monotonic()
    reply = sandbox.refund(order)
    assert 0.5 <= time.monotonic() - began < 2
    assert (reply.status, reply.json["amount_minor"]) == (201, 5000)


def test_slow_keeps_its_key_in_use(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "slow", seconds=0.5)
    with sandbox.send_raw_refund(order) as sock:
        while not sandbox.booked(order):
            time.sleep(0.01)
        reply = sandbox.refund(order)
        assert (reply.status, reply.json["error"]["code"]) == (409, "key_in_use")
        assert sock.recv(20).startswith(b"HTTP/1.1 201 ")
    assert sandbox.refund(order).status == 201
    assert len(sandbox.booked(order)) == 1


def test_trickle_headers_sends_one_byte_at_a_time(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "trickle_headers", seconds=0.2)
    with sandbox.send_raw_refund(order) as sock:
        began = time.monotonic()
        pieces = [sock.recv(100) for _ in range(4)]
    assert pieces == [b"H", b"T", b"T", b"P"]
    assert time.monotonic() - began > 0.5


def test_trickle_headers_takes_0_7_seconds_for_a_byte(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "trickle_headers")
    with sandbox.send_raw_refund(order) as sock:
        sock.recv(1)
        began = time.monotonic()
        sock.recv(1)
    assert 0.6 < time.monotonic() - began < 1.2


def test_trickle_body_sends_the_head_at_once_and_ends_well(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "trickle_body", seconds=0.005)
    with sandbox.send_raw_refund(order) as sock:
        first = sock.recv(65_536)
        assert first.startswith(b"HTTP/1.1 201 Created\r\n")
        head, _, rest = first.partition(b"\r\n\r\n")
        assert len(rest) < 100
        rest += read_until_close(sock)
    assert f"Content-Length: {len(rest)}".encode() in head
    assert json.loads(rest)["order"] == order


def test_cut_body_announces_more_than_it_sends(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "cut_body")
    with sandbox.send_raw_refund(order) as sock:
        head, _, body = read_until_close(sock).partition(b"\r\n\r\n")
    length = next(int(line.split()[1]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length"))
    assert 0 < len(body) < length
    sandbox.order_fault(order, "cut_body")
    with pytest.raises(http.client.IncompleteRead):
        sandbox.refund(order)


def test_cut_without_length_shows_only_in_the_json(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "cut_without_length")
    reply = sandbox.refund(order)
    assert reply.status == 201
    assert "content-length" not in reply.headers
    assert reply.headers["connection"] == "close"
    assert reply.body.startswith(b'{"id": "re_')
    with pytest.raises(json.JSONDecodeError):
        json.loads(reply.body)


def test_bad_gzip_cannot_be_decoded(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "bad_gzip")
    reply = sandbox.refund(order)
    assert (reply.status, reply.headers["content-encoding"]) == (201, "gzip")
    with pytest.raises(zlib.error):
        gzip.decompress(reply.body)


def test_bad_gzip_is_an_error_in_requests(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "bad_gzip")
    body = {"order": order, "amount_minor": 5000, "currency": "EUR"}
    with pytest.raises(requests.exceptions.ContentDecodingError):
        requests.post(f"{sandbox.url}/v1/refunds", json=body, headers={"Idempotency-Key": order}, timeout=5)


@pytest.mark.parametrize(("fault", "status"), [("html_200", 200), ("error_504_booked", 504)])
def test_html_pages_hide_a_booking_that_the_key_replays(
    sandbox: Sandbox, order: str, fault: str, status: int
) -> None:
    sandbox.order_fault(order, fault)
    reply = sandbox.refund(order)
    assert reply.status == status
    assert reply.headers["content-type"].startswith("text/html")
    assert reply.body.startswith(b"<!DOCTYPE html>")
    assert sandbox.refund(order).status == 201


def test_wrong_amount_200_books_the_right_amount(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "wrong_amount_200")
    reply = sandbox.refund(order)
    [entry] = sandbox.booked(order)
    assert reply.status == 200
    assert (entry["amount_minor"], reply.json["amount_minor"]) == (5000, 5100)
    assert (reply.json["id"], reply.json["currency"]) == (entry["id"], "EUR")


@pytest.mark.parametrize(("fault", "entries"), [("error_500_booked", 1), ("error_500_not_booked", 0)])
def test_a_500_is_stored_and_replayed_with_its_key(sandbox: Sandbox, order: str, fault: str, entries: int) -> None:
    sandbox.order_fault(order, fault)
    first, second, third = sandbox.refund(order), sandbox.refund(order), sandbox.refund(order)
    assert [reply.status for reply in (first, second, third)] == [500, 500, 500]
    assert "idempotent-replayed" not in first.headers
    assert third.headers["idempotent-replayed"] == second.headers["idempotent-replayed"] == "true"
    assert third.body == first.body
    assert len(sandbox.booked(order)) == entries
    assert sandbox.refund(order, key=f"other-{order}").status == 201


def test_a_500_is_not_stored_without_dedupe(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.configure(dedupes=False)
    own_sandbox.order_fault(order, "error_500_not_booked")
    assert [own_sandbox.refund(order).status for _ in range(2)] == [500, 201]


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("reject_422", 422, "refund_not_allowed"),
        ("reject_401", 401, "unauthorized"),
        ("conflict_409", 409, "conflict"),
        ("too_many_429", 429, "rate_limited"),
        ("already_refunded_400", 400, "already_refunded"),
    ],
)
def test_refusals_name_their_reason_and_leave_the_key_free(
    sandbox: Sandbox, order: str, fault: str, status: int, code: str
) -> None:
    sandbox.order_fault(order, fault)
    reply = sandbox.refund(order)
    assert (reply.status, reply.json["error"]["code"]) == (status, code)
    assert ("retry-after" in reply.headers) == (status == 429)
    after = sandbox.refund(order)
    assert after.status == 201
    assert "idempotent-replayed" not in after.headers


def test_a_refusal_hits_a_key_that_has_already_booked(sandbox: Sandbox, order: str) -> None:
    sandbox.refund(order)
    sandbox.order_fault(order, "reject_422")
    assert sandbox.refund(order).status == 422
    assert len(sandbox.booked(order)) == 1


def test_redirect_307_makes_a_follower_send_twice(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "redirect_307")
    reply = sandbox.refund(order)
    assert reply.status == 307
    assert sandbox.booked(order) == []
    body = {"order": order, "amount_minor": 5000, "currency": "EUR"}
    followed = sandbox.call("POST", reply.headers["location"], body, {"Idempotency-Key": f"key-{order}"})
    assert followed.status == 201
    assert len(sandbox.requests(order)) == 2


def test_redirect_302_leads_to_a_page_that_looks_like_a_refund(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "redirect_302")
    reply = sandbox.refund(order)
    page = sandbox.call("GET", reply.headers["location"])
    assert (reply.status, page.status) == (302, 200)
    assert (page.json["order"], page.json["amount_minor"]) == (order, 5000)
    assert sandbox.booked(order) == []


def test_pending_stays_pending(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "pending")
    reply = sandbox.refund(order)
    assert (reply.status, reply.json["status"]) == (201, "pending")
    [entry] = sandbox.ledger(order=order).json["data"]
    assert (entry["id"], entry["status"]) == (reply.json["id"], "pending")


def test_pending_then_failed_turns_after_its_seconds(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "pending_then_failed", seconds=0.5)
    reply = sandbox.refund(order)
    assert (reply.status, reply.json["status"]) == (201, "pending")
    assert sandbox.booked(order)[0]["status"] == "pending"
    time.sleep(0.55)
    assert sandbox.ledger(order=order).json["data"][0]["status"] == "failed"
    assert sandbox.call("GET", f"/v1/refunds/{reply.json['id']}").json["status"] == "failed"


def test_ledger_error_hits_looks_by_order_and_by_key(sandbox: Sandbox, order: str) -> None:
    sandbox.refund(order)
    sandbox.order_fault(order, "ledger_error", times=2)
    assert sandbox.ledger(order=f"{order}-other").status == 200
    assert sandbox.ledger().status == 200
    assert sandbox.ledger(order=order).status == 500
    assert sandbox.ledger(idempotency_key=f"key-{order}").status == 500
    assert len(sandbox.ledger(order=order).json["data"]) == 1


def test_ledger_error_hits_the_key_of_a_post_that_booked_nothing(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "reject_422")
    sandbox.refund(order)
    sandbox.order_fault(order, "ledger_error")
    assert sandbox.ledger(idempotency_key=f"key-{order}").status == 500


def test_ledger_error_leaves_posts_alone(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "ledger_error")
    assert sandbox.refund(order).status == 201
    assert sandbox.ledger(order=order).status == 500


def test_ledger_page_2_error_spares_the_first_page(sandbox: Sandbox, order: str) -> None:
    for number in range(3):
        sandbox.refund(order, key=f"{order}-{number}")
    sandbox.order_fault(order, "ledger_page_2_error")
    first = sandbox.ledger(order=order, limit=2)
    assert (first.status, first.json["has_more"]) == (200, True)
    cursor = first.json["data"][-1]["id"]
    assert sandbox.ledger(order=order, limit=2, starting_after=cursor).status == 500
    assert sandbox.ledger(order=order, limit=2, starting_after=cursor).status == 200


def test_refuse_connection_refuses_and_comes_back_on_the_same_port(own_sandbox: Sandbox) -> None:
    reply = own_sandbox.call("POST", "/_control/faults", {"fault": "refuse_connection", "seconds": 0.6})
    closed_at = time.monotonic()
    assert reply.status == 201
    for _ in range(3):
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", own_sandbox.port), timeout=1)
    while True:
        try:
            assert own_sandbox.call("GET", "/healthz").status == 200
            break
        except ConnectionRefusedError:
            assert time.monotonic() - closed_at < 3
            time.sleep(0.02)
    assert time.monotonic() - closed_at > 0.4


def test_a_fault_hits_as_often_as_ordered_and_only_its_order(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "reject_422", times=2)
    assert sandbox.refund(f"{order}-other").status == 201
    assert [sandbox.refund(order).status for _ in range(3)] == [422, 422, 201]


def test_faults_of_one_order_hit_in_the_sequence_ordered(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "too_many_429")
    sandbox.order_fault(order, "error_504_booked")
    assert [sandbox.refund(order).status for _ in range(3)] == [429, 504, 201]
    assert [seen["replayed"] for seen in sandbox.requests(order)] == [False, False, True]


def test_a_repeated_booking_fault_still_books_once(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "lose_response", times=3)
    for _ in range(3):
        with pytest.raises(http.client.RemoteDisconnected):
            sandbox.refund(order)
    assert len(sandbox.booked(order)) == 1
    assert [seen["entry_id"] is None for seen in sandbox.requests(order)] == [False, True, True]


def test_malformed_posts_do_not_use_up_a_fault(sandbox: Sandbox, order: str) -> None:
    sandbox.order_fault(order, "reject_401")
    assert sandbox.refund(order, amount_minor="50").status == 422
    assert sandbox.refund(order).status == 401
