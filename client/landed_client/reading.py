"""Reads values out of JSON without ever raising: what is not understood is left out, not guessed."""

from datetime import datetime
from typing import Any


def text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def text(value: Any, default: str = "") -> str:
    return value if isinstance(value, str) else default


def whole(value: Any, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def time_or_none(value: Any) -> datetime | None:
    """An RFC 3339 time; None for anything else, one without a zone included."""
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    return found if found.tzinfo is not None else None


def mapping(value: Any) -> dict[str, Any]:
    return dict(value) if isinstance(value, dict) else {}
