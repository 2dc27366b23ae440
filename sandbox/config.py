"""How the service behaves; changed through /_control/config and kept with the books."""

import base64
import binascii
import ipaddress
import json
import sqlite3
from dataclasses import asdict, dataclass
from urllib.parse import urlsplit

from sandbox import validation
from sandbox.validation import Check
from sandbox.wire import Refused

SECRET_PREFIX = "whsec_"  # noqa: S105  a prefix, no secret


@dataclass(frozen=True)
class Config:
    """dedupes: a key books once. ledger_lag_s: seconds until the ledger shows an entry. latency_ms:
    milliseconds before the service gets to a /v1 request. page_size: most entries on one ledger page."""

    dedupes: bool = True
    ledger_lag_s: float = 0
    latency_ms: int = 0
    page_size: int = 100
    webhook_url: str | None = None
    webhook_secret: str | None = None


def read_config(db: sqlite3.Connection) -> Config:
    stored = {row["name"]: json.loads(row["value"]) for row in db.execute("SELECT name, value FROM config")}
    return Config(**stored)


def change_config(db: sqlite3.Connection, content: dict[str, object]) -> Config:
    """Change the fields given, leave the others; raises Refused (422) and changes nothing if one is wrong."""
    changes = validation.check_fields(content, CHECKS)
    for name, value in changes.items():
        db.execute("INSERT OR REPLACE INTO config (name, value) VALUES (?, ?)", (name, json.dumps(value)))
    config = read_config(db)
    if config.webhook_url is not None and config.webhook_secret is None:
        raise Refused(422, "invalid_field", "webhook_url needs a webhook_secret: webhooks are always signed")
    return config


def config_json(config: Config) -> dict[str, object]:
    return asdict(config)


def decode_secret(secret: str) -> bytes:
    """The bytes of a `whsec_…` secret (Standard Webhooks); raises ValueError."""
    try:
        key = base64.b64decode(secret.removeprefix(SECRET_PREFIX), validate=True)
    except binascii.Error:
        key = b""
    if not secret.startswith(SECRET_PREFIX) or not key:
        raise ValueError(f"{SECRET_PREFIX} followed by base64")
    return key


def _secret(value: object) -> str:
    if not isinstance(value, str) or not value.isascii():
        raise ValueError(f"{SECRET_PREFIX} followed by base64")
    decode_secret(value)
    return value


def _loopback_url(value: object) -> str:
    """The sandbox never calls another machine, so the address must say loopback in so many words."""
    wrong = ValueError("an http:// URL on a loopback address, like http://127.0.0.1:8000/webhooks")
    if not isinstance(value, str) or not value.isascii() or not value.isprintable() or " " in value:
        raise wrong
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018  raises for a port that is none
        loopback = parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        raise wrong from None
    if parts.scheme != "http" or "@" in parts.netloc or not loopback:
        raise wrong
    return value


CHECKS: dict[str, Check] = {
    "dedupes": validation.boolean,
    "ledger_lag_s": validation.number(0, 86_400),
    "latency_ms": validation.integer(0, 60_000),
    "page_size": validation.integer(1, 1_000),
    "webhook_url": validation.optional(_loopback_url),
    "webhook_secret": validation.optional(_secret),
}
