"""What a list of intents can be narrowed to, as keyword arguments."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypedDict


class Filters(TypedDict, total=False):
    """`status`: one, or several. `run`: the context's. `cursor`: the `next_cursor` of the page before."""

    status: str | Sequence[str] | None
    settled: bool | None
    kind: str | None
    subject: str | None
    request_key: str | None
    run: str | None
    updated_after: datetime | None
    cursor: str | None
    limit: int | None
