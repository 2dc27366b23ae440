"""One act, killed at every point of it in turn."""

from __future__ import annotations

import gc
import os
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, connections
from django.test.utils import setup_test_environment, teardown_test_environment

from actions import times, transport
from actions.models import Intent
from config import children
from reconciliation.models import Decision
from tests.kill_points import acts, bugs, heirs, holds, stores
from tests.kill_points.acts import ACTS, Act, Facts, Scene, clock
from tests.kill_points.downstream import Service, control
from tests.kill_points.lives import Answered, Web, ask, live, stay_as_it_is
from tests.kill_points.seams import Point, Seams

Tell = Callable[[Any], None]


@dataclass(frozen=True)
class Stage:
    port: int
    application: WSGIHandler


@dataclass(frozen=True)
class Ran:
    """`points`: as they were counted; `died`: at how many of them somebody did; `worlds`: how many different ones
    were left behind; `faults`: what did not hold, by the point where somebody had died; `unseen`: so many commits
    that were no point; `rounds`: how many it took until all was quiet, at the most."""

    points: list[Point]
    faults: dict[str, list[str]] = field(default_factory=dict)
    died: int = 0
    worlds: int = 0
    unseen: int = 0
    rounds: int = 0
    cpu_s: float = 0.0


def as_json(ran: Ran) -> dict[str, Any]:
    return asdict(ran)


@contextmanager
def ready() -> Iterator[Stage]:
    """The other side runs, and everything is loaded that a life would load."""
    service, parent = Service(), os.getpid()
    pid = os.fork()
    if pid == 0:
        children.die_with(parent)
        os.close(1)  # whoever reads what the zygote says sees when that one ends
        service.serve_forever()
    try:
        service.socket.close()
        times.now = clock  # the one thing that is not real
        acts.allow_receiver(service.port)
        stage = Stage(service.port, WSGIHandler())
        _warm_up(stage)
        stay_as_it_is()
        yield stage
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# Between them they go through all of the product that an act goes through.
_WARMING = ("second vote", "webhook", "events")


def _warm_up(stage: Stage) -> None:
    """What Python and Django do once per process is done here once, and not by every copy."""
    for name in _WARMING:
        act = ACTS[name]
        control(stage.port, "clear")
        facts = _prepare(stage, act)
        if act.act is not None:
            act.act()
        _heirs(stage, act, facts, "")
        clock.ahead = timedelta(0)
    _let_go()


def _let_go() -> None:
    """Nothing that is open here may be open in two processes."""
    connections.close_all()
    transport.close_idle()
    gc.collect()
    while threading.active_count() > 1:
        time.sleep(0.01)
    assert not (left := [name for name in _open() if name.startswith("socket:") or "sqlite" in name]), left


def _open() -> Iterator[str]:
    """What this process holds open."""
    for number in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):
            yield str(number.readlink())


def run(stage: Stage, name: str, *, bug: str, points: bool) -> Ran:
    """Counts the points of an act and, with `points`, dies at each of them that can leave a world of its own.
    `bug`: what is wrong with the product meanwhile; it ends where that is found first."""
    act = ACTS[name]
    settings.LANDED_UNDO_S = act.undo_s
    control(stage.port, "clear")
    facts = live(lambda tell: tell(_prepare(stage, act))).said[-1]
    control(stage.port, "keep")
    counted, unseen = _count(stage, act, facts, bug)
    found: dict[str, list[str]] = {}
    rounds = _after(stage, act, facts, "nobody died", found, bug)
    worlds: set[object] = set()
    deadly = _deadly(counted) if points else []
    for number, end in enumerate(deadly):
        if bug and found:
            break
        world = _die_at(stage, act, facts, number, deadly, found, bug)
        if world is not None and world not in worlds:
            worlds.add(world)
            rounds = max(rounds, _after(stage, act, facts, f"{name} {number}: {end.point}", found, bug))
    return Ran(counted, found, len(deadly), len(worlds), unseen, rounds)


@dataclass(frozen=True)
class End:
    """Where to die: at the `nth` point of this name, or at the very first of all, which this one was."""

    point: Point
    nth: int
    first: bool = False

    @property
    def die_at(self) -> tuple[Point | None, int]:
        return (None, 1) if self.first else (self.point, self.nth)


def _deadly(points: list[Point]) -> list[End]:
    """Where to die. Between two points nothing leaves the process and nothing is committed; so what is left behind
    right before one is what was left behind at the one before it, and what was only received dies with whoever read
    it. That leaves the very beginning, and whatever has just happened, or half of it."""
    passed, found = Counter[Point](), [End(point, 1, first=True) for point in points[:1]]
    for point in points:
        passed[point] += 1
        if point.changes:
            found.append(End(point, passed[point]))
    return found


def _prepare(stage: Stage, act: Act) -> Facts:
    clock.ahead = timedelta(0)
    stores.empty()
    flush_redis()
    with _pages_are_kept():
        facts = act.prepare(Scene(stage.port))
    found = Intent.objects.filter(pk__in=facts.get("intents", []))
    facts["keys"] = {str(intent.pk): intent.idempotency_key for intent in found}
    facts |= {"had": Decision.objects.count(), "ahead": heirs.ahead()}
    return {"kept": stores.keep(act.name.replace(" ", "_"))} | facts


@contextmanager
def _pages_are_kept() -> Iterator[None]:
    """Django's test client knows what a page was made of: what its form would send back."""
    setup_test_environment()
    try:
        yield
    finally:
        teardown_test_environment()


def flush_redis() -> None:
    with redis.Redis.from_url(settings.REDIS_URL) as found:
        found.flushdb()


def _count(stage: Stage, act: Act, facts: Facts, bug: str) -> tuple[list[Point], int]:
    life, _ = _victim(stage, act, facts, None, bug)
    said = life.said[-1]
    return [Point(**one) for one in said["points"]], said["unseen"]


def _die_at(
    stage: Stage, act: Act, facts: Facts, number: int, ends: list[End], found: dict[str, list[str]], bug: str
) -> object:
    """Returns what was left behind, as far as anybody can tell who comes next: what has been committed, what is in
    Redis, what the other side has taken, and what the client was told. Two that are alike have the same future."""
    end = ends[number]
    for _ in range(3):  # a machine that stands still for a second makes the product do something else: then anew
        life, answered = _victim(stage, act, facts, end, bug)
        if here := life.killed and bool(life.said) and Point(**life.said[-1]) == end.point:
            break
    if not here:
        # Counted anew it may not be there: then chance had sent something to Redis in one piece more.
        if end in _deadly(_count(stage, act, facts, bug)[0]):
            found[f"{act.name} {number}: {end.point}"] = [
                f"it was to die here; killed: {life.killed}, at {life.said[-1:]}"
            ]
        return None
    whole = answered.status is not None and answered.status < 400
    facts["ack"], facts["acked"] = answered.body if whole else "", whole
    committed = sum(one.point.to == "database" and one.point.when == "after" for one in ends[: number + 1])
    service = control(stage.port, "state")
    taken = (len(service["effects"]), len(service["requests"]), len(service["told"]))
    return committed, _in_redis(), taken, answered.status


def _in_redis() -> tuple[tuple[str, str], ...]:
    """Which keys there are, whatever chance named them."""
    with redis.Redis.from_url(settings.REDIS_URL) as found:
        keys = [(re.sub("[0-9a-f-]{16,}", "#", key.decode()), found.type(key).decode()) for key in found.scan_iter()]
    return tuple(sorted(keys))


def _victim(stage: Stage, act: Act, facts: Facts, end: End | None, bug: str) -> tuple[Any, Answered]:
    control(stage.port, "restore")
    answered = Answered()
    web = Web(stage.application) if act.request else None

    def be(tell: Tell) -> None:
        _be_victim(stage, act, facts, tell, web, end, bug)

    def beside() -> None:
        if web is not None and act.request is not None:
            ask(web, act.request(facts), answered)

    return live(be, beside), answered


def _be_victim(stage: Stage, act: Act, facts: Facts, tell: Tell, web: Web | None, end: End | None, bug: str) -> None:
    stores.restore(facts["kept"])
    flush_redis()
    clock.ahead = timedelta(seconds=facts["ahead"])
    counts = end is None
    points: list[Point] = []
    seams = Seams(
        peers={stage.port: "downstream"},
        tell=points.append if counts else lambda point: tell(asdict(point)),
        die_at=end.die_at if end else None,
        commits=stores.commits_so_far if counts and connection.vendor == "sqlite" else None,
    )
    bugs.ALL.get(bug, lambda: None)()
    seams.install()
    web.handle_request() if web is not None else act.act() if act.act is not None else None
    unseen = seams.commits() - seams.seen if seams.commits else 0
    tell({"points": [asdict(point) for point in points], "unseen": unseen})


def _after(stage: Stage, act: Act, facts: Facts, name: str, found: dict[str, list[str]], bug: str) -> int:
    said = live(lambda tell: tell(_heirs(stage, act, facts, bug))).said[-1]
    if said["faults"]:
        found[name] = said["faults"]
    return int(said["rounds"])


def _heirs(stage: Stage, act: Act, facts: Facts, bug: str) -> dict[str, Any]:
    bugs.ALL.get(bug, lambda: None)()
    stores.wait_for_the_dead()
    clock.ahead = timedelta(seconds=facts["ahead"])
    facts = {"ack": ""} | facts
    facts["faults"] = [*holds.bells(), *holds.told_is_kept(facts)]
    with _pages_are_kept():
        rounds = heirs.go_on(act, facts)
    wrong = holds.faults(act, facts, control(stage.port, "state"))
    return {"rounds": rounds, "faults": [*facts["faults"], *wrong]}
