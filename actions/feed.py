"""Reads the outbox: the events of some agents after a position, in the order of commits."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import Q

from actions import positions
from actions.models import Agent, Event


@dataclass(frozen=True)
class Page:
    """`next`: where to go on; it is past everything that was looked at, so it moves on without events, too."""

    events: list[Event]
    next: int
    has_more: bool


def heard_by(viewer: Agent) -> list[int]:
    """The agents whose events `viewer` may read: its own, and its group's."""
    if not viewer.group:
        return [viewer.pk]
    return list(Agent.objects.filter(group=viewer.group).order_by("pk").values_list("pk", flat=True))


def page(agents: Sequence[int], *, after: int, limit: int) -> Page:
    """At most `limit` events past `after`. Those not stamped yet are not there yet: call `positions.stamp` first."""
    # First: what is stamped later is found by the next call, as `next` is not past it.
    head = positions.head()
    found = [event for agent in agents for event in _of_one(agent, after, head, limit + 1)]
    found.sort(key=_position)
    more = len(found) > limit
    shown = found[:limit]
    return Page(shown, _position(shown[-1]) if more else max(after, head), more)


def anything(agents: Sequence[int], *, after: int) -> bool:
    """Whether there is something past `after`, stamped or not."""
    new = Q(position__gt=after) | Q(position__isnull=True)
    return Event.objects.filter(new, agent__in=agents).exists()


def _of_one(agent: int, after: int, head: int, limit: int) -> list[Event]:
    # Agent by agent, each along its index and no further: sorting those of many agents would read all of them.
    mine = Event.objects.filter(agent=agent, position__gt=after, position__lte=head)
    return list(mine.order_by("position")[:limit])


def _position(event: Event) -> int:
    assert event.position is not None
    return event.position
