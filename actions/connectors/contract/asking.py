"""What the checks share: answers without a network, and assertions that say what is wrong. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from actions.connectors.base import Connector
from actions.transport import Phase, Reason, Reply

Check = Callable[[Connector], None]

SHOWS_NOTHING: Final = (
    *(b"", b"<h1>Sign in</h1>", b"null", b"true", b"7", b'"ok"', b"[]", b"{}", b'{"id": ', b"\xff\xfe"),
    *(b"[" * 100_000, b'{"id": NaN}', b"1" * 10_000),
)


def reply(status: int, body: bytes | str = b"", **headers: str) -> Reply:
    """A whole answer as the transport hands it on; headers with underscores for dashes."""
    raw = body.encode() if isinstance(body, str) else body
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Reply(Phase.DONE, Reason.OK, status, names, raw, elapsed_ms=1)


def broken(phase: Phase, reason: Reason, status: int | None = None, body: bytes = b"") -> Reply:
    """An answer that stopped at `phase`."""
    return Reply(phase, reason, status, {}, body, elapsed_ms=1)


def same(found: Any, wanted: Any, about: str) -> None:
    assert found == wanted, f"{about}: {found!r}, not {wanted!r}"
