"""Who is told of a transition, inside its database transaction. An explicit list, no signals.

`reconciliation` registers itself here (its AppConfig.ready), so that `actions` needs no import of it. A listener
that raises undoes the transition: reviews and statuses change together or not at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actions.models import Agent, Attempt, Downstream, Intent, Transition

OnTransition = Callable[["Intent", "Transition"], None]
OnContradiction = Callable[["Intent", "Attempt"], None]
OnBreaker = Callable[["Downstream", str, bool, datetime], None]
OnLimit = Callable[["Agent", str, datetime], None]


@dataclass(frozen=True)
class Listeners:
    """transition(intent, its new transition) · contradiction(intent, its attempt whose later answer contradicts
    where the intent is) · breaker(downstream, which line of it, whether it is open now, at) · limit(agent that was
    paused, the name of the limit that it tripped, at)."""

    transition: list[OnTransition]
    contradiction: list[OnContradiction]
    breaker: list[OnBreaker]
    limit: list[OnLimit]


listeners = Listeners([], [], [], [])


def _add_once(found: list[Callable[..., None]], listener: Callable[..., None]) -> None:
    if listener not in found:
        found.append(listener)


def register(
    *,
    transition: OnTransition | None = None,
    contradiction: OnContradiction | None = None,
    breaker: OnBreaker | None = None,
    limit: OnLimit | None = None,
) -> None:
    if transition:
        _add_once(listeners.transition, transition)
    if contradiction:
        _add_once(listeners.contradiction, contradiction)
    if breaker:
        _add_once(listeners.breaker, breaker)
    if limit:
        _add_once(listeners.limit, limit)


def tell_transition(intent: "Intent", transition: "Transition") -> None:
    for listener in listeners.transition:
        listener(intent, transition)


def tell_contradiction(intent: "Intent", attempt: "Attempt") -> None:
    for listener in listeners.contradiction:
        listener(intent, attempt)


def tell_breaker(downstream: "Downstream", line: str, *, is_open: bool, at: datetime) -> None:
    for listener in listeners.breaker:
        listener(downstream, line, is_open, at)


def tell_limit(agent: "Agent", limit: str, *, at: datetime) -> None:
    for listener in listeners.limit:
        listener(agent, limit, at)
