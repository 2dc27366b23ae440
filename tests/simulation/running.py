"""One run: a seed, so many steps, then quiet; and what was seen."""

from __future__ import annotations

import hashlib
import logging
import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import TypeVar
from unittest.mock import patch

from django.conf import settings
from django.core.management import call_command

from tests.simulation import actors, database, invariants, policies, seeded
from tests.simulation.database import Template, raw
from tests.simulation.network import LOOKING, SENDING
from tests.simulation.policies import DEADLINE_S, MARGIN_S, Cast
from tests.simulation.tasks import Task
from tests.simulation.world import Violation, World

K = TypeVar("K")
STEPS = 32
_JUMPS_S = {0.3: 6, 1.2: 6, 2.5: 5, 4.0: 6, 11.0: 4, 35.0: 2, 130.0: 0.7, 310.0: 0.5, 900.0: 0.1}
_MOST_TASKS = 5


@dataclass(frozen=True)
class Plan:
    """`steps`: how many decisions the seed makes before it gets quiet; without `crashes` or `faults` of the network,
    a run is easier to read."""

    seed: int
    steps: int = STEPS
    crashes: bool = True
    faults: bool = True


@dataclass(frozen=True)
class Ran:
    plan: Plan
    violation: Violation | None
    trace: list[str]
    digest: str


@dataclass(frozen=True)
class Stage:
    """A database in memory with its template: made once per process, for as many runs as one likes."""

    cast: Cast
    template: Template


@contextmanager
def stage() -> Iterator[Stage]:
    """Needs a migrated, empty default database on SQLite; that one stays as it is."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, policies.ENVIRONMENT))
        stack.enter_context(database.in_memory())
        cast = policies.make()
        for person in cast.people:
            person.get_all_permissions()  # read once, kept on the object
        yield Stage(cast, Template())


def run(here: Stage, plan: Plan) -> Ran:
    """Never raises for what the product does wrong: it says so."""
    here.template.restore()
    world = World(plan.seed, here.cast, random.Random(f"run {plan.seed}"))
    product = random.Random(f"product {plan.seed}")
    with ExitStack() as stack:
        stack.enter_context(seeded.replaced(product, world.clock, world.network.send))
        stack.enter_context(_listening(world))
        _set_up(world, plan, stack)
        watch = invariants.Watch(world)
        world.on_first_byte = watch.first_byte
        violation = None
        try:
            _go(world, plan, watch)
        except Violation as found:
            violation = found
            world.tell(str(found))
        for task in world.tasks:
            task.crash()
        digest = _digest(world)
    return Ran(plan, violation, world.trace, digest)


def _set_up(world: World, plan: Plan, stack: ExitStack) -> None:
    world.kinds = world.dice.sample(world.cast.kinds, world.dice.choice((1, 1, 1, 2)))
    world.undo_s = world.dice.choice((0, 15))
    world.alike = world.dice.choice((0.3, 0.6, 0.95))
    # Every seed has a temper: what all of them do a little of, few would ever do enough of.
    world.menu = _tempered(world.dice, actors.MENU)
    world.network.sending = _tempered(world.dice, SENDING)
    world.network.looking = _tempered(world.dice, LOOKING)
    world.crashes = world.dice.choice((0.02, 0.05, 0.10)) if plan.crashes else 0.0
    world.stops = world.dice.choice((0.0, 0.04, 0.10))
    stack.enter_context(patch.object(settings, "LANDED_UNDO_S", world.undo_s))
    # Whom to tell of a case changes no case, and costs a fifth of the time.
    stack.enter_context(patch.object(settings, "LANDED_MAIL", ""))
    world.network.calm = not plan.faults
    world.tell(f"seed {plan.seed}: {', '.join(kind.name for kind in world.kinds)}; undo {world.undo_s} s")


def _tempered(dice: random.Random, table: dict[K, int]) -> dict[K, int]:
    return {name: weight * dice.choice((1, 4, 4, 16)) for name, weight in table.items()}


def _go(world: World, plan: Plan, watch: invariants.Watch) -> None:
    # A run in which nobody asks for anything shows nothing.
    for _ in range(2):
        _begin(world, actors.propose)
    for _ in range(plan.steps):
        _step(world, watch)
        watch.after_step()
    _be_quiet(world, watch)
    watch.at_the_end()


def _step(world: World, watch: invariants.Watch) -> None:
    dice, roll = world.dice, world.dice.random()
    live = [task for task in world.tasks if not task.frozen]
    for task in world.tasks:
        task.frozen = max(0, task.frozen - 1)
    if roll < 0.16:
        world.forward(_jump(world, watch))
    elif roll < 0.16 + world.crashes and live:
        task = dice.choice(live)
        where = task.where
        task.crash()
        world.tell(f"{task.name} CRASHES ({where})")
    elif roll < 0.16 + world.crashes + world.stops and live:
        task = dice.choice(live)
        task.frozen = dice.choice((5, 15, 1_000))
        world.tell(f"{task.name} is stopped ({task.where})")
        if dice.random() < 0.5:
            _pass_its_lease(world, watch)
    elif live and (roll < 0.70 or len(live) >= _MOST_TASKS):
        _resume(world, dice.choice(live), dice.choice((1, 1, 2, 4, 20)))
    else:
        for act in dice.choices(list(world.menu), list(world.menu.values()), k=6):
            # Machines that find nothing to do cost time and show little.
            if watch.has_to_act(act) or dice.random() < 0.03:
                _begin(world, act)
                break
    world.tasks = [task for task in world.tasks if not task.dead]


def _pass_its_lease(world: World, watch: invariants.Watch) -> None:
    """Longer than whatever it held was its own; a clock notices, and the others go on without it."""
    for seconds in (DEADLINE_S + MARGIN_S + 0.2, 5.1):
        world.forward(seconds)
        for act in (actors.tick, actors.work):
            if watch.has_to_act(act):
                watch.after_step()
                _begin(world, act)


def _jump(world: World, watch: invariants.Watch) -> float:
    """Seconds: some, or until shortly before, at or after the moment when the next thing is due."""
    dice = world.dice
    due = watch.next_moment()
    if due is not None and dice.random() < 0.6:
        return max(0.0, due + dice.choice((-0.05, 0.0, 0.05, 0.7)))
    return dice.choices(list(_JUMPS_S), list(_JUMPS_S.values()))[0] * dice.uniform(0.8, 1.2)


def _begin(world: World, act: actors.Act) -> None:
    actors.write_hooks(world)
    task = Task(f"{act.__name__}-{world.number(act.__name__)}", actors.begin(world, act))
    world.tasks.append(task)
    _resume(world, task, world.dice.choice((1, 2, 20)))


def _resume(world: World, task: Task, times: int) -> None:
    """Goes on for so many pauses."""
    for _ in range(times):
        try:
            task.resume()
        except Exception as bug:
            raise Violation("no surprises", f"{task.name}: {type(bug).__name__}: {bug}") from bug
        if world.faults:
            raise world.faults[0]
        if task.dead:
            break
    world.tell(f"{task.name} {task.where}")


def _be_quiet(world: World, watch: invariants.Watch) -> None:
    """No more faults; whoever was in the middle of something is dead, or finishes, or was stopped and goes on only
    when everything is over, as do webhooks that were stuck; time passes, and machines do what is due, until nothing
    is."""
    world.network.calm = True
    stopped = []
    for task in world.tasks:
        roll = world.dice.random()
        if roll < 0.4:
            task.crash()
        elif roll < 0.7:
            _resume(world, task, 1_000)
        else:
            stopped.append(task)
    world.tasks = stopped
    _begin_alone(world, actors.let_all_go_on)
    world.tell("quiet")
    watch.after_step()
    _until_nothing_is_due(world, watch)
    for task in stopped:
        world.tell(f"{task.name} goes on at last ({task.where})")
        _resume(world, task, 1_000)
        watch.after_step()
    _begin_alone(world, actors.let_all_go_on)
    world.late = actors.stuck(world)
    while world.late:
        _begin_alone(world, actors.deliver_late)
        watch.after_step()
    _until_nothing_is_due(world, watch)


def _until_nothing_is_due(world: World, watch: invariants.Watch) -> None:
    for _ in range(30):
        if (wait := watch.next_due()) is None:
            return
        world.forward(wait)
        for act in [act for act in invariants.MACHINES if watch.has_to_act(act)]:
            _begin_alone(world, act)
            watch.after_step()
    if watch.hanging():
        raise Violation("11 nothing is left hanging", watch.what_hangs())


def _begin_alone(world: World, act: actors.Act) -> None:
    _resume(world, Task(f"quiet-{act.__name__}", actors.begin(world, act)), 10_000)


@contextmanager
def _listening(world: World) -> Iterator[None]:
    """What the product's last-resort handlers swallow is a fault all the same."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.exc_info:
                kind, text = record.exc_info[0], record.exc_info[1]
                world.violated("no surprises", f"{record.getMessage()}: {kind.__name__ if kind else ''}: {text}")

    listener = Listener(logging.ERROR)
    loggers = [logging.getLogger(name) for name in ("actions", "reconciliation")]
    before = [(logger.propagate, logger.handlers, logger.level) for logger in loggers]
    for logger in loggers:
        logger.propagate, logger.handlers = False, [listener]
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, (propagate, handlers, level) in zip(loggers, before, strict=True):
            logger.propagate, logger.handlers = propagate, handlers
            logger.setLevel(level)


def _digest(world: World) -> str:
    """Over the trace and over every chain of history, which covers whatever happened to an intent."""
    heads = raw().execute("SELECT id, status, chain_head, updated_at FROM actions_intent ORDER BY id").fetchall()
    text = "\n".join([*world.trace, *map(str, heads)])
    return hashlib.sha256(text.encode()).hexdigest()


def shrink(here: Stage, ran: Ran) -> Ran:
    """A run that is easier to read and breaks the same invariant: with fewer steps, without crashes or faults."""
    assert ran.violation is not None
    name, best = ran.violation.name, ran
    for simpler in ({"crashes": False}, {"faults": False}):
        tried = run(here, replace(best.plan, **simpler))
        if tried.violation is not None and tried.violation.name == name:
            best = tried
    steps = best.plan.steps
    while steps > 1:
        steps = steps * 3 // 4
        tried = run(here, replace(best.plan, steps=steps))
        if tried.violation is not None and tried.violation.name == name:
            best = tried
    return best


def migrate() -> None:
    """For whoever runs without pytest."""
    call_command("migrate", verbosity=0)
