"""The file behind the books: one SQLite connection, one lock, one schema.

WAL with synchronous=NORMAL survives a killed process, which is what the sandbox is put through; it does not
promise to survive a power cut.
"""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager

SCHEMA = """
CREATE TABLE IF NOT EXISTS entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL,
    order_ref TEXT NOT NULL,
    amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL,
    status TEXT NOT NULL,
    fails_at REAL,
    idempotency_key TEXT,
    created REAL NOT NULL,
    metadata TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS entries_by_order ON entries (order_ref, created, seq);
CREATE INDEX IF NOT EXISTS entries_by_key ON entries (idempotency_key, created, seq);
CREATE INDEX IF NOT EXISTS entries_by_age ON entries (created, seq);
CREATE TABLE IF NOT EXISTS keys (
    idempotency_key TEXT PRIMARY KEY,
    digest TEXT NOT NULL,
    status INTEGER NOT NULL,
    body BLOB NOT NULL
);
CREATE TABLE IF NOT EXISTS requests (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    order_ref TEXT,
    idempotency_key TEXT,
    body TEXT NOT NULL,
    at REAL NOT NULL,
    fault TEXT,
    entry_id TEXT,
    replayed INTEGER NOT NULL DEFAULT 0,
    status INTEGER
);
CREATE INDEX IF NOT EXISTS requests_by_order ON requests (order_ref);
CREATE INDEX IF NOT EXISTS requests_by_key ON requests (idempotency_key);
CREATE TABLE IF NOT EXISTS faults (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    order_ref TEXT NOT NULL,
    name TEXT NOT NULL,
    seconds REAL,
    times_left INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS faults_by_order ON faults (order_ref);
CREATE TABLE IF NOT EXISTS config (
    name TEXT PRIMARY KEY,
    value TEXT NOT NULL
);
CREATE TABLE IF NOT EXISTS events (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    due_at REAL NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0
);
"""
TABLES = ("entries", "keys", "requests", "faults", "config", "events")


class Store:
    """All access goes through `transaction`, so that threads take turns on the one connection."""

    def __init__(self, path: str | None) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path or ":memory:", check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode=WAL")
        self._db.execute("PRAGMA synchronous=NORMAL")
        self._db.executescript(SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commit on leaving, roll back on any exception. Not re-entrant."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def close_for_good(self) -> None:
        """Close and keep the lock: threads still alive wait instead of meeting a closed connection."""
        self._lock.acquire()
        self._db.close()


def forget_everything(db: sqlite3.Connection) -> None:
    for table in TABLES:
        db.execute(f"DELETE FROM {table}")  # noqa: S608  a constant
