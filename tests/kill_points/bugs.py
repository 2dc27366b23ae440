"""Bugs on purpose: what must be found, and a commit that must be a point. Each changes the product inside one process
that is about to begin, and names the act that shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.core.signals import request_finished
from django.db import connection, transaction

from actions import dispatch, hooks, outcomes, transitions
from actions.api import intents as routes
from actions.models import Agent, Intent
from actions.notifying import claiming
from reconciliation.reviews import pending


def _commit_here() -> None:
    """In the middle of a transaction, which goes on as another one."""
    connection._commit()
    with connection.cursor() as cursor:
        cursor.execute("BEGIN IMMEDIATE" if connection.vendor == "sqlite" else "BEGIN")
        for name in filter(None, connection.savepoint_ids):
            cursor.execute(f"SAVEPOINT {name}")


def _before(module: Any, name: str, act: Callable[..., None]) -> None:
    real = getattr(module, name)

    def wrapped(*args: Any, **kwargs: Any) -> Any:
        act(*args, **kwargs)
        return real(*args, **kwargs)

    setattr(module, name, wrapped)


def one_more_commit() -> None:
    """No bug: as if somebody had added a commit to the product."""
    hooks.register(transition=lambda *_: transaction.on_commit(lambda: Agent.objects.update(title="one more")))


def sent_before_it_is_written_down() -> None:
    """Claimed, sent and saved in one transaction."""

    def run(*, budget_s: float, slots: int | None = None) -> int:
        with transaction.atomic():
            claimed = dispatch._claim(1)
            for one in claimed:
                dispatch.save(one, dispatch.send(one))
        return len(claimed)

    dispatch.run = run


def status_apart_from_its_history() -> None:
    save = transitions.Transition.save

    def later(self: Any, **options: Any) -> None:
        _commit_here()
        save(self, **options)

    transitions.Transition.save = later  # type: ignore[method-assign]


def effect_apart_from_the_decision() -> None:
    """What was decided is carried out; that it was is written down afterwards."""
    real = pending.effects.carry_out

    def carry_out(*args: Any, **kwargs: Any) -> None:
        real(*args, **kwargs)
        _commit_here()

    pending.effects.carry_out = carry_out


def told_before_it_is_committed() -> None:
    """The answer leaves, and then the transaction ends."""
    real = routes.recording.record

    def record(*args: Any, **kwargs: Any) -> Any:
        around = transaction.atomic()
        around.__enter__()
        _at_the_end.append(around)
        return real(*args, **kwargs)

    routes.recording.record = record
    request_finished.connect(_end, weak=False)


_at_the_end: list[transaction.Atomic] = []


def _end(**_: Any) -> None:
    while _at_the_end:
        _at_the_end.pop().__exit__(None, None, None)


def attempt_closed_apart_from_the_status() -> None:
    """What was answered is kept in one transaction, what it means in the next."""
    _before(outcomes, "_move", lambda *_, **__: _commit_here())


def a_lease_that_requeues() -> None:
    """Whoever died has sent nothing, surely."""
    real = transitions.apply

    def apply(intent_id: Any, **named: Any) -> Intent:
        moved = real(intent_id, **named)
        if named["reason"] == "lease_over":
            Intent.objects.filter(pk=intent_id).update(status="recorded", next_attempt_at=named["now"])
        return moved

    transitions.apply = apply


def delivered_before_it_is_sent() -> None:
    real = claiming._take

    def take(delivery: Any, now: Any) -> bool:
        taken = real(delivery, now)
        type(delivery).objects.filter(pk=delivery.pk).update(state="delivered", next_at=None, delivered_at=now)
        return taken

    claiming._take = take


@dataclass(frozen=True)
class Bug:
    act: str
    apply: Callable[[], None]


BUGS: dict[str, Bug] = {
    bug.apply.__name__: bug
    for bug in (
        Bug("dispatch", sent_before_it_is_written_down),
        Bug("dispatch", a_lease_that_requeues),
        Bug("dispatch", attempt_closed_apart_from_the_status),
        Bug("check that finds it", status_apart_from_its_history),
        Bug("decide", effect_apart_from_the_decision),
        Bug("record", told_before_it_is_committed),
        Bug("events", delivered_before_it_is_sent),
    )
}
ALL = {name: bug.apply for name, bug in BUGS.items()} | {"one_more_commit": one_more_commit}
