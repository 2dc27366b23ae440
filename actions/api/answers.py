"""How values are written in answers."""

import json
from datetime import UTC, datetime
from typing import Any, overload

from django.http import HttpResponse


def json_response(body: Any, *, status: int = 200, content_type: str = "application/json") -> HttpResponse:
    """`body` as JSON. Never cached: every answer speaks of one moment and to one agent."""
    text = json.dumps(body, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    # Whatever half of a surrogate pair a caller sent us in its path must not break the answer about it.
    answer = HttpResponse(text.encode("utf-8", "replace"), status=status, content_type=content_type)
    answer["Cache-Control"] = "no-store"
    return answer


@overload
def time_text(at: datetime) -> str: ...
@overload
def time_text(at: None) -> None: ...
def time_text(at: datetime | None) -> str | None:
    """RFC 3339 in UTC; exact, so that what was read can be asked for again."""
    if at is None:
        return None
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
