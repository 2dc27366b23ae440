"""Signed webhooks (standardwebhooks.com, symmetric scheme); a receiver never holds up an answer."""

import base64
import hashlib
import hmac
import http.client
import json
import secrets
import sqlite3
import sys
import threading
import time
from urllib.parse import urlsplit

from sandbox.books import Entry, iso, ledger_json
from sandbox.config import Config, decode_secret, read_config
from sandbox.store import Store

# Seconds before the second try and the following ones; after the last the event is dropped.
RETRY_AFTER = (0.5, 1, 2, 4)
TIMEOUT_S = 3


def announce(
    db: sqlite3.Connection, config: Config, entry: Entry, event_type: str, *, at: float | None = None
) -> None:
    """Queue an event in the transaction that books it; `at` (unix seconds) puts it off."""
    if config.webhook_url is None:
        return
    due_at = time.time() if at is None else at
    content = {"type": event_type, "timestamp": iso(due_at), "data": ledger_json(entry)}
    db.execute(
        "INSERT INTO events (id, body, due_at) VALUES (?, ?, ?)",
        (f"evt_{secrets.token_hex(12)}", json.dumps(content, separators=(",", ":")), due_at),
    )


def sign(secret: str, event_id: str, timestamp: str, body: str) -> str:
    """The value of webhook-signature: `v1,` and the base64 of the HMAC-SHA256 over id.timestamp.body."""
    signed = f"{event_id}.{timestamp}.{body}".encode()
    return "v1," + base64.b64encode(hmac.digest(decode_secret(secret), signed, hashlib.sha256)).decode()


def deliver_for_ever(store: Store, bell: threading.Event) -> None:
    """Deliver what is due, one event at a time; `bell` says that there may be a new one."""
    while True:
        with store.transaction() as db:
            event = db.execute("SELECT * FROM events ORDER BY due_at LIMIT 1").fetchone()
            config = read_config(db)
        wait = 60.0 if event is None else event["due_at"] - time.time()
        if wait > 0:
            bell.wait(min(wait, 60))
            bell.clear()
            continue
        delivered = config.webhook_url is None or _deliver(config, event["id"], event["body"])
        _note(store, event, delivered)


def _note(store: Store, event: sqlite3.Row, delivered: bool) -> None:
    with store.transaction() as db:
        if delivered or event["tries"] >= len(RETRY_AFTER):
            db.execute("DELETE FROM events WHERE id = ?", (event["id"],))
        else:
            due_at = time.time() + RETRY_AFTER[event["tries"]]
            db.execute("UPDATE events SET tries = tries + 1, due_at = ? WHERE id = ?", (due_at, event["id"]))
    if not delivered and event["tries"] >= len(RETRY_AFTER):
        print(f"sandbox: gave up on webhook {event['id']}", file=sys.stderr, flush=True)


def _deliver(config: Config, event_id: str, body: str) -> bool:
    """One try; True if the receiver answered 2xx within the time-out. Redirects are not followed."""
    if config.webhook_url is None or config.webhook_secret is None:
        return False
    parts = urlsplit(config.webhook_url)
    timestamp = str(int(time.time()))
    headers = {
        "Content-Type": "application/json",
        "webhook-id": event_id,
        "webhook-timestamp": timestamp,
        "webhook-signature": sign(config.webhook_secret, event_id, timestamp, body),
    }
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_S)
    try:
        target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        connection.request("POST", target, body.encode(), headers)
        return 200 <= connection.getresponse().status < 300
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
