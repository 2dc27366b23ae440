"""Every POST seen, whatever became of it. Every function works inside the caller's transaction."""

import json
import sqlite3
import time

from sandbox.books import iso


def record_request(db: sqlite3.Connection, *, order: str | None, idempotency_key: str | None, body: object) -> int:
    """Note a POST on arrival; returns its number."""
    cursor = db.execute(
        "INSERT INTO requests (order_ref, idempotency_key, body, at) VALUES (?, ?, ?, ?)",
        (order, idempotency_key, json.dumps(body), time.time()),
    )
    assert cursor.lastrowid is not None
    return cursor.lastrowid


def finish_request(
    db: sqlite3.Connection,
    number: int,
    *,
    status: int | None,
    fault: str | None = None,
    entry_id: str | None = None,
    replayed: bool = False,
) -> None:
    """Note what became of a POST, before its answer leaves."""
    db.execute(
        "UPDATE requests SET status = ?, fault = ?, entry_id = ?, replayed = ? WHERE seq = ?",
        (status, fault, entry_id, replayed, number),
    )


def list_requests(db: sqlite3.Connection, order: str | None) -> list[dict[str, object]]:
    if order is None:
        rows = db.execute("SELECT * FROM requests ORDER BY seq")
    else:
        rows = db.execute("SELECT * FROM requests WHERE order_ref = ? ORDER BY seq", (order,))
    return [
        {
            "order": row["order_ref"],
            "idempotency_key": row["idempotency_key"],
            "body": json.loads(row["body"]),
            "at": row["at"],
            "at_iso": iso(row["at"]),
            "fault": row["fault"],
            "entry_id": row["entry_id"],
            "replayed": bool(row["replayed"]),
            "status": row["status"],
        }
        for row in rows
    ]


def find_order_of_key(db: sqlite3.Connection, idempotency_key: str) -> str | None:
    """The order that a key was used for, by an entry or, if nothing was booked, by a POST."""
    row = db.execute(
        "SELECT order_ref FROM entries WHERE idempotency_key = :key"
        " UNION ALL SELECT order_ref FROM requests WHERE idempotency_key = :key AND order_ref IS NOT NULL"
        " LIMIT 1",
        {"key": idempotency_key},
    ).fetchone()
    return row["order_ref"] if row else None
