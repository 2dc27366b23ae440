"""Keyset pagination: the next page begins behind the last row shown, so its cost doesn't grow with its number."""

import base64
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, TypeVar
from urllib.parse import urlencode

T = TypeVar("T")
PER_PAGE = 50
# No cursor of ours is longer; a longer one is not even read.
_LONGEST = 400


@dataclass(frozen=True)
class Page(Generic[T]):
    """`following`: the cursor of the page after this one; empty on the last."""

    rows: list[T]
    following: str


def encode(*parts: str | int) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


def decode(cursor: str, *, parts: int) -> list[str | int] | None:
    """What `encode` was given; None for a cursor that is none, which shows the first page."""
    if len(cursor) > _LONGEST:
        return None
    try:
        found = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError):
        return None
    right = isinstance(found, list) and len(found) == parts and all(type(part) in (str, int) for part in found)
    return found if right else None


def moment(part: str | int) -> datetime:
    """A part of a cursor that is a time, in UTC. Raises ValueError, also for one that no calendar holds in UTC."""
    try:
        return datetime.fromisoformat(str(part)).astimezone(UTC)
    except OverflowError as beyond:
        raise ValueError(str(beyond)) from None


def cut(rows: Iterable[T], *, per_page: int | None = None) -> tuple[list[T], bool]:
    """One row more than a page is fetched, to know whether another page follows."""
    found, size = list(rows), per_page or PER_PAGE
    return found[:size], len(found) > size


def link(kept: Mapping[str, str], **changes: str) -> str:
    """`?…`: what is kept, with changes; an empty text takes something away."""
    return "?" + urlencode({name: text for name, text in {**kept, **changes}.items() if text})
