"""The route of the feed: what changed for this agent's intents, in the order of commits."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, QueryDict
from ninja import Router

from actions import feed, positions, waiting
from actions.api import describing, preferring
from actions.api.answers import json_response, time_text
from actions.api.auth import READ, Bearer, agent_of
from actions.api.listing import DEFAULT_LIMIT, MAX_LIMIT
from actions.api.schemas import EventsOut
from actions.errors import BadQuery, Invalid
from actions.models import Event

router = Router(tags=["events"])

_QUERY: Final = ("after", "limit")
_MOST_DIGITS: Final = 18  # a position fits into 63 bits


@router.get(
    "/events",
    auth=Bearer(*READ),
    response=EventsOut,
    by_alias=True,
    url_name="events",
    openapi_extra=describing.EVENTS,
)
def list_events(request: HttpRequest) -> HttpResponse:
    """What happened past a position, the oldest first; with Prefer: wait=N, as soon as something happens."""
    agents = feed.heard_by(agent_of(request))
    after, limit = _read_query(request.GET)
    positions.stamp()
    if after > positions.head():
        raise Invalid.field("after", "It is past the newest event: not a position that was given out here.")

    def answer() -> HttpResponse:
        positions.stamp()
        page = feed.page(agents, after=after, limit=limit)
        data = [_event_json(event) for event in page.events]
        return json_response({"data": data, "next": page.next, "has_more": page.has_more})

    return preferring.hold_while(
        request, answer, wait=_waiter(agents, after), in_vain=lambda: not feed.anything(agents, after=after)
    )


def _waiter(agents: Sequence[int], after: int) -> Callable[[int], None]:
    def wait(seconds: int) -> None:
        until = time.monotonic() + seconds
        if not feed.anything(agents, after=after):
            waiting.until_true(lambda: feed.anything(agents, after=after), until=until)

    return wait


def _read_query(query: QueryDict) -> tuple[int, int]:
    """`after` and `limit`. Raises BadQuery, also for an unknown parameter, and Invalid for `after`."""
    for name, values in query.lists():
        if name not in _QUERY:
            raise BadQuery(f"{name!r} is unknown; there are {', '.join(_QUERY)}.", known=list(_QUERY))
        if len(values) > 1:
            raise BadQuery(f"{name} is given twice.")
    after, limit = _number(query.get("after", "0")), _number(query.get("limit", str(DEFAULT_LIMIT)))
    if after is None:
        raise Invalid.field("after", "A position: a whole number, as `next` gave it.")
    if limit is None or not 1 <= limit <= MAX_LIMIT:
        raise BadQuery(f"limit: a whole number from 1 to {MAX_LIMIT}.")
    return after, limit


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else None


def _event_json(event: Event) -> dict[str, Any]:
    # No reason and no actor: those would tell limits and suspicions.
    return {
        "position": event.position,
        "type": event.type,
        "intent": str(event.intent_id),
        "sequence": event.sequence,
        "status": event.intent_status or None,
        "at": time_text(event.at),
    }
