"""Who is told of a transition, inside its database transaction. An explicit list, no signals.

`reconciliation` registers itself here (its AppConfig.ready), so that `actions` needs no import of it. A listener
that raises undoes the transition: reviews and statuses change together or not at all.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from actions.models import Attempt, Intent, Transition

OnTransition = Callable[["Intent", "Transition"], None]
OnContradiction = Callable[["Intent", "Attempt"], None]


@dataclass(frozen=True)
class Listeners:
    """transition(intent, its new transition) · contradiction(intent, its attempt whose later answer contradicts
    where the intent is)."""

    transition: list[OnTransition]
    contradiction: list[OnContradiction]


listeners = Listeners([], [])


def _add_once(found: list[Callable[..., None]], listener: Callable[..., None]) -> None:
    if listener not in found:
        found.append(listener)


def register(*, transition: OnTransition | None = None, contradiction: OnContradiction | None = None) -> None:
    if transition:
        _add_once(listeners.transition, transition)
    if contradiction:
        _add_once(listeners.contradiction, contradiction)


def tell_transition(intent: "Intent", transition: "Transition") -> None:
    for listener in listeners.transition:
        listener(intent, transition)


def tell_contradiction(intent: "Intent", attempt: "Attempt") -> None:
    for listener in listeners.contradiction:
        listener(intent, attempt)
