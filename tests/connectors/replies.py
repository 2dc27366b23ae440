"""Replies as the transport hands them on, without a network."""

from __future__ import annotations

import json
from typing import Any

from actions.transport import Phase, Reason, Reply


def reply(status: int, body: Any = b"", **headers: str) -> Reply:
    """A whole answer. `body`: bytes, text, or what becomes JSON; headers with underscores for dashes."""
    if isinstance(body, str):
        body = body.encode()
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(Phase.DONE, Reason.OK, status, names, body, elapsed_ms=1)


def broken(phase: Phase, reason: Reason, status: int | None = None, body: bytes = b"") -> Reply:
    return Reply(phase, reason, status, {}, body, elapsed_ms=1)
