"""The ledger and the answers kept with keys. Every function works inside the caller's transaction."""

import json
import secrets
import sqlite3
import time
from dataclasses import dataclass
from datetime import UTC, datetime

from sandbox.wire import Response

ENTRY_TYPES = ("refund", "reversal", "fee")
ENTRY_STATUSES = ("succeeded", "pending", "failed")
_PREFIXES = {"refund": "re", "reversal": "rv", "fee": "fee"}


@dataclass(frozen=True)
class Entry:
    """One row of the ledger: amount in minor units, created in unix seconds, status as of the reading."""

    id: str
    type: str
    order: str
    amount_minor: int
    currency: str
    status: str
    idempotency_key: str | None
    created: float
    metadata: dict[str, object]


@dataclass(frozen=True)
class Stored:
    """The answer that a key replays, with the digest of the body it belongs to."""

    digest: str
    response: Response


def iso(seconds: float) -> str:
    """Unix seconds as RFC 3339 in UTC with microseconds."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def ledger_json(entry: Entry) -> dict[str, object]:
    return {
        "id": entry.id,
        "type": entry.type,
        "order": entry.order,
        "amount_minor": entry.amount_minor,
        "currency": entry.currency,
        "status": entry.status,
        "idempotency_key": entry.idempotency_key,
        "created": iso(entry.created),
        "metadata": entry.metadata,
    }


def refund_json(entry: Entry) -> dict[str, object]:
    content = ledger_json(entry)
    return {name: value for name, value in content.items() if name not in ("type", "metadata")}


def add_entry(
    db: sqlite3.Connection,
    *,
    order: str,
    amount_minor: int,
    currency: str,
    metadata: dict[str, object],
    idempotency_key: str | None,
    entry_type: str = "refund",
    status: str = "succeeded",
    created: float | None = None,
    fails_after: float | None = None,
) -> Entry:
    """Book one entry, as of now unless `created` (unix seconds) is given; `fails_after` is in seconds."""
    created = time.time() if created is None else created
    entry = Entry(
        id=f"{_PREFIXES[entry_type]}_{secrets.token_hex(12)}",
        type=entry_type,
        order=order,
        amount_minor=amount_minor,
        currency=currency,
        status=status,
        idempotency_key=idempotency_key,
        created=created,
        metadata=metadata,
    )
    db.execute(
        "INSERT INTO entries (id, type, order_ref, amount_minor, currency, status, fails_at, idempotency_key,"
        " created, metadata) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (entry.id, entry_type, order, amount_minor, currency, status,
         None if fails_after is None else created + fails_after,
         idempotency_key, created, json.dumps(metadata)),
    )  # fmt: skip
    return entry


def list_entries(
    db: sqlite3.Connection,
    *,
    order: str | None = None,
    idempotency_key: str | None = None,
    lag_s: float = 0,
    since: float | None = None,
    starting_after: str | None = None,
    limit: int = -1,
) -> list[Entry]:
    """Entries oldest first. `lag_s` hides what is younger than that; 0 hides nothing."""
    filters: list[tuple[str, object]] = []
    if order is not None:
        filters.append(("order_ref = ?", order))
    if idempotency_key is not None:
        filters.append(("idempotency_key = ?", idempotency_key))
    if lag_s > 0:
        filters.append(("created <= ?", time.time() - lag_s))
    if since is not None:
        filters.append(("created >= ?", since))
    if starting_after is not None:
        filters.append(("(created, seq) > (SELECT created, seq FROM entries WHERE id = ?)", starting_after))
    where = " AND ".join(condition for condition, _ in filters) or "1"
    rows = db.execute(
        f"SELECT * FROM entries WHERE {where} ORDER BY created, seq LIMIT ?",  # noqa: S608  conditions are constants above
        [*(value for _, value in filters), limit],
    )
    return [_entry(row) for row in rows]


def find_entry(db: sqlite3.Connection, entry_id: str) -> Entry | None:
    row = db.execute("SELECT * FROM entries WHERE id = ?", (entry_id,)).fetchone()
    return _entry(row) if row else None


def _entry(row: sqlite3.Row) -> Entry:
    failed = row["fails_at"] is not None and row["fails_at"] <= time.time()
    return Entry(
        id=row["id"],
        type=row["type"],
        order=row["order_ref"],
        amount_minor=row["amount_minor"],
        currency=row["currency"],
        status="failed" if failed else row["status"],
        idempotency_key=row["idempotency_key"],
        created=row["created"],
        metadata=json.loads(row["metadata"]),
    )


def find_stored(db: sqlite3.Connection, idempotency_key: str) -> Stored | None:
    row = db.execute("SELECT * FROM keys WHERE idempotency_key = ?", (idempotency_key,)).fetchone()
    return Stored(row["digest"], Response(row["status"], row["body"])) if row else None


def store_answer(db: sqlite3.Connection, idempotency_key: str, digest: str, response: Response) -> None:
    db.execute(
        "INSERT INTO keys (idempotency_key, digest, status, body) VALUES (?, ?, ?, ?)",
        (idempotency_key, digest, response.status, response.body),
    )
