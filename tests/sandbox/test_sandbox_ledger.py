"""The ledger: pages, lag, entries by hand."""

import time
from datetime import UTC, datetime

import pytest
from sandbox_client import Sandbox


def test_pages_hold_every_entry_once_oldest_first(sandbox: Sandbox, order: str) -> None:
    ids = [sandbox.refund(order, key=f"{order}-{number}").json["id"] for number in range(5)]
    pages: list[list[str]] = []
    cursor: dict[str, str] = {}
    while True:
        page = sandbox.ledger(order=order, limit=2, **cursor).json
        pages.append([entry["id"] for entry in page["data"]])
        if not page["has_more"]:
            break
        cursor = {"starting_after": pages[-1][-1]}
    assert pages == [ids[:2], ids[2:4], ids[4:]]


def test_a_page_that_ends_with_the_last_entry_has_no_more(sandbox: Sandbox, order: str) -> None:
    for number in range(2):
        sandbox.refund(order, key=f"{order}-{number}")
    assert sandbox.ledger(order=order, limit=2).json["has_more"] is False


def test_the_page_size_bounds_the_limit(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.configure(page_size=2)
    for number in range(3):
        own_sandbox.refund(order, key=f"{order}-{number}")
    assert len(own_sandbox.ledger().json["data"]) == 2
    assert len(own_sandbox.ledger(limit=100).json["data"]) == 2


def test_looks_by_key_and_by_order_find_their_own(sandbox: Sandbox, order: str) -> None:
    entry_id = sandbox.refund(order).json["id"]
    sandbox.refund(f"{order}-other")
    for query in ({"idempotency_key": f"key-{order}"}, {"order": order}):
        assert [entry["id"] for entry in sandbox.ledger(**query).json["data"]] == [entry_id]
    assert sandbox.ledger(order=order, idempotency_key="other").json["data"] == []


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"limit": 0}, 422),
        ({"limit": "x"}, 422),
        ({"starting_after": "re_none"}, 400),
        ({"ordre": "order-1"}, 422),
    ],
)
def test_a_look_that_makes_no_sense_is_refused(sandbox: Sandbox, query: dict[str, object], status: int) -> None:
    assert sandbox.ledger(**query).status == status


def test_entries_younger_than_the_lag_are_not_shown(own_sandbox: Sandbox, order: str) -> None:
    own_sandbox.configure(ledger_lag_s=0.6)
    refund = own_sandbox.refund(order).json
    assert own_sandbox.ledger(order=order).json == {"data": [], "has_more": False}
    assert own_sandbox.ledger(idempotency_key=f"key-{order}").json["data"] == []
    assert len(own_sandbox.booked(order)) == 1
    assert own_sandbox.call("GET", f"/v1/refunds/{refund['id']}").status == 200
    time.sleep(0.65)
    assert len(own_sandbox.ledger(order=order).json["data"]) == 1


def test_an_entry_by_hand_appears_in_the_ledger(sandbox: Sandbox, order: str) -> None:
    body = {
        "order": order, "amount_minor": 700, "currency": "EUR", "type": "reversal", "status": "pending",
        "idempotency_key": None, "created": "2026-01-02T03:04:05+00:00", "metadata": {"by": "hand"},
    }  # fmt: skip
    reply = sandbox.call("POST", "/_control/entries", body)
    assert reply.status == 201
    assert reply.json == {**body, "id": reply.json["id"], "created": "2026-01-02T03:04:05.000000Z"}
    assert sandbox.ledger(order=order).json["data"] == [reply.json]
    assert sandbox.requests(order) == []


def test_entries_by_hand_default_to_a_succeeded_refund_now(sandbox: Sandbox, order: str) -> None:
    body = {"order": order, "amount_minor": 700, "currency": "EUR"}
    entry = sandbox.call("POST", "/_control/entries", body).json
    assert (entry["type"], entry["status"], entry["metadata"]) == ("refund", "succeeded", {})


def test_an_older_entry_by_hand_comes_first(sandbox: Sandbox, order: str) -> None:
    now = sandbox.refund(order).json["id"]
    body = {
        "order": order,
        "amount_minor": 700,
        "currency": "EUR",
        "type": "fee",
        "created": time.time() - 60,
    }
    old = sandbox.call("POST", "/_control/entries", body).json["id"]
    assert [entry["id"] for entry in sandbox.ledger(order=order).json["data"]] == [old, now]


def test_since_leaves_out_what_was_booked_before(sandbox: Sandbox, order: str) -> None:
    now = time.time()
    for age in (7_200, 60):
        body = {"order": order, "amount_minor": 700, "currency": "EUR", "created": now - age}
        assert sandbox.call("POST", "/_control/entries", body).status == 201
    hour_ago = datetime.fromtimestamp(now - 3_600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert len(sandbox.ledger(order=order, since=hour_ago).json["data"]) == 1
    assert sandbox.ledger(order=order, since="yesterday").status == 422


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "gift"},
        {"status": "unknown"},
        {"type": ["refund"]},
        {"created": "yesterday"},
        {"created": "2026-01-02T03:04:05"},
        {"created": 1e300},
        {"amount_minor": 0},
        {"oder": "x"},
    ],
)
def test_a_wrong_entry_by_hand_is_refused(sandbox: Sandbox, order: str, fields: dict[str, object]) -> None:
    body = {"order": order, "amount_minor": 700, "currency": "EUR", **fields}
    assert sandbox.call("POST", "/_control/entries", body).status == 422
    assert sandbox.booked(order) == []
