"""One act, killed at every point of it in turn."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import redis
from django.conf import settings
from django.core.handlers.wsgi import WSGIHandler
from django.db import connection, connections, transaction
from django.test.utils import setup_test_environment, teardown_test_environment

from actions import hooks, times, transport
from actions.models import Agent, Intent
from tests.kill_points import acts, heirs, holds, stores
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
    """`points`: as they were counted; `faults`: what did not hold, by the point where somebody had died; `unseen`: so
    many commits that were no point; `died`: where; `rounds`: how many it took until all was quiet, at the most."""

    points: list[Point]
    faults: dict[str, list[str]] = field(default_factory=dict)
    died: int = 0
    unseen: int = 0
    rounds: int = 0
    told: int = 0
    cpu_s: float = 0.0


def as_json(ran: Ran) -> dict[str, Any]:
    return asdict(ran)


@contextmanager
def ready() -> Iterator[Stage]:
    """The other side runs, and everything is loaded that a life would load."""
    service = Service()
    pid = os.fork()
    if pid == 0:
        service.serve_forever()
    service.socket.close()
    times.now = clock  # the one thing that is not real
    acts.allow_receiver(service.port)
    stage = Stage(service.port, WSGIHandler())
    _warm_up(stage)
    stay_as_it_is()
    try:
        yield stage
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


# Between them they go through all of the product that an act goes through.
_WARMING = ("second vote", "agree to a correction", "webhook", "events", "replay")


def _warm_up(stage: Stage) -> None:
    """What Python and Django do once per process is done here once, and not by every copy."""
    for name in _WARMING:
        act = ACTS[name]
        control(stage.port, "clear")
        facts = _prepare(stage, act)
        if act.act is not None:
            act.act()
        _heirs(stage, act, facts)
        clock.ahead = timedelta(0)
    _let_go()


def _let_go() -> None:
    """Nothing that is open here may be open in two processes."""
    connections.close_all()
    transport.close_idle()
    gc.collect()
    while threading.active_count() > 1:
        time.sleep(0.01)
    open_ = [os.readlink(found) for found in Path("/proc/self/fd").iterdir() if found.exists()]
    assert not [one for one in open_ if one.startswith("socket:") or "sqlite" in one], open_


def run(stage: Stage, name: str, *, extra: bool, points: bool) -> Ran:
    """Counts the points of an act and, with `points`, dies at each of them. `extra`: with one more commit."""
    act = ACTS[name]
    settings.LANDED_UNDO_S = act.undo_s
    control(stage.port, "clear")
    facts = live(lambda tell: tell(_prepare(stage, act))).said[-1]
    control(stage.port, "keep")
    counted, unseen, told = _count(stage, act, facts, extra=extra)
    found: dict[str, list[str]] = {}
    rounds = _after(stage, act, facts, "nobody died", found)
    for number in range(len(counted) if points else 0):
        rounds = max(rounds, _die_at(stage, act, facts, number, counted[number], found))
    return Ran(counted, found, len(counted) if points else 0, unseen, rounds, told)


def _prepare(stage: Stage, act: Act) -> Facts:
    clock.ahead = timedelta(0)
    stores.empty()
    flush_redis()
    with _pages_are_kept():
        facts = act.prepare(Scene(stage.port))
    found = Intent.objects.filter(pk__in=facts.get("intents", []))
    facts["keys"] = {str(intent.pk): intent.idempotency_key for intent in found}
    facts["ahead"] = heirs.ahead()
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


def _count(stage: Stage, act: Act, facts: Facts, *, extra: bool) -> tuple[list[Point], int, int]:
    life, _ = _victim(stage, act, facts, die_at=None, extra=extra)
    said = life.said[-1]
    return [Point(**one) for one in said["points"]], said["unseen"], said["told"]


def _die_at(stage: Stage, act: Act, facts: Facts, number: int, point: Point, found: dict[str, list[str]]) -> int:
    name = f"{act.name} {number}: {point}"
    life, answered = _victim(stage, act, facts, die_at=number, extra=False)
    if not life.killed or not life.said or Point(**life.said[-1]) != point:
        found[name] = [f"it was to die here; killed: {life.killed}, at {life.said}"]
        return 0
    facts["ack"] = answered.body if answered.status is not None and answered.status < 400 else ""
    return _after(stage, act, facts, name, found)


def _victim(stage: Stage, act: Act, facts: Facts, *, die_at: int | None, extra: bool) -> tuple[Any, Answered]:
    control(stage.port, "restore")
    answered = Answered()
    web = Web(stage.application) if act.request else None

    def be(tell: Tell) -> None:
        _be_victim(stage, act, facts, tell, web, die_at=die_at, extra=extra)

    def beside() -> None:
        if web is not None and act.request is not None:
            ask(web, act.request(facts), answered)

    return live(be, beside), answered


def _be_victim(
    stage: Stage, act: Act, facts: Facts, tell: Tell, web: Web | None, *, die_at: int | None, extra: bool
) -> None:
    stores.restore(facts["kept"])
    flush_redis()
    clock.ahead = timedelta(seconds=facts["ahead"])
    counts = die_at is None
    points: list[Point] = []
    seams = Seams(
        peers={stage.port: "downstream"},
        tell=points.append if counts else lambda point: tell(asdict(point)),
        die_at=die_at,
        commits=stores.commits_so_far if counts and connection.vendor == "sqlite" else None,
    )
    if extra:
        hooks.register(transition=_commit_once_more)
    seams.install()
    web.handle_request() if web is not None else act.act() if act.act is not None else None
    unseen = seams.commits() - seams.seen if seams.commits else 0
    told = 0
    tell({"points": [asdict(point) for point in points], "unseen": unseen, "told": told})


def _commit_once_more(*_: Any) -> None:
    """As if somebody had added a commit to the product."""
    transaction.on_commit(lambda: Agent.objects.update(title="one more"))


def _after(stage: Stage, act: Act, facts: Facts, name: str, found: dict[str, list[str]]) -> int:
    said = live(lambda tell: tell(_heirs(stage, act, facts))).said[-1]
    if said["faults"]:
        found[name] = said["faults"]
    return int(said["rounds"])


def _heirs(stage: Stage, act: Act, facts: Facts) -> dict[str, Any]:
    stores.wait_for_the_dead()
    clock.ahead = timedelta(seconds=facts["ahead"])
    facts = {"ack": ""} | facts | {"faults": holds.bells()}
    with _pages_are_kept():
        rounds = heirs.go_on(act, facts)
    wrong = holds.faults(act, facts, control(stage.port, "state"))
    return {"rounds": rounds, "faults": [*facts["faults"], *wrong]}
