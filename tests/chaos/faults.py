"""What happens to the processes: each kind once in a random order, spread over the time, and then at random."""

import heapq
import itertools
import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import redis

from config import servers
from tests.chaos import asking, plan
from tests.chaos.machine import Machine
from tests.chaos.orders import OF_THE_LISTENER, Deck
from tests.chaos.tally import Tally

_KILLS = {f"kill_{sort}": sort for sort in ("web", "worker", "clock", "sandbox")}
_STOPS = {f"stop_{sort}": sort for sort in ("web", "worker", "clock")}
_SERVERS = ("flush_redis", "kill_redis", "kill_postgresql", "sweeps_at_once")
# Of the time, the first part in which each kind comes once; and behind which none of these do.
_EACH_WITHIN, _LAST = 0.75, 0.85
_LOSES_LOOKS = ("kill_worker", "kill_postgresql")


def kinds(database: plan.Database) -> tuple[str, ...]:
    """There is no database process to kill on SQLite."""
    found = (*_KILLS, *_STOPS, *_SERVERS, *OF_THE_LISTENER)
    return tuple(kind for kind in found if database == "postgresql" or kind != "kill_postgresql")


@dataclass(order=True)
class _Due:
    at: float
    number: int
    act: Callable[[], None]


class Injector:
    """`step` is called again and again by the main thread, which owns the processes."""

    def __init__(self, wanted: plan.Plan, machine: Machine, tally: Tally) -> None:
        self._wanted, self._machine, self._tally = wanted, machine, tally
        self._dice = random.Random(f"faults {wanted.seed}")
        self._deck = Deck(kinds(wanted.database), self._dice)
        self._times = self._plan()
        self._due: list[_Due] = []
        self._numbers = itertools.count()
        self._http = asking.Http(threads=1)
        self._next = 0.0
        self.told: list[str] = []
        self._began = time.monotonic()

    def begin(self) -> None:
        self._began = time.monotonic()
        self._next = self._began + next(self._times)

    def _plan(self) -> Iterator[float]:
        """Seconds from the beginning: each kind by three quarters of the time, then about as often."""
        many = len(self._deck.cards)
        gap = min(6.0, self._wanted.seconds * _EACH_WITHIN / many)
        for number in itertools.count():
            yield gap * (number + self._dice.uniform(0.1, 0.9))

    def step(self, *, quiet: bool = False) -> None:
        now = time.monotonic()
        while self._due and (quiet or self._due[0].at <= now):
            heapq.heappop(self._due).act()
        if not quiet and now >= self._next:
            self._next = self._began + next(self._times)
            kind = self._deck.draw()
            if not self._too_late(kind, now - self._began) and self._inject(kind):
                self._tally.add(kind)
                self.told.append(f"{now - self._began:7.1f} s  {kind}")
            else:
                self._deck.put_back(kind)
        self._machine.revive()

    def _too_late(self, kind: str, passed: float) -> bool:
        """A look that was begun and lost is due again after half a minute, for which all would have to wait."""
        return kind in _LOSES_LOOKS and _LAST < passed / self._wanted.seconds < 1

    def end(self) -> None:
        """Everything goes on: whatever was stopped or is down is there again."""
        self.step(quiet=True)

    def _later(self, seconds: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._due, _Due(time.monotonic() + seconds, next(self._numbers), act))

    # --- the kinds. False: there was nothing to do it to.

    def _inject(self, kind: str) -> bool:
        if kind in _KILLS:
            return self._kill(_KILLS[kind])
        if kind in _STOPS:
            return self._stop(_STOPS[kind])
        if kind in OF_THE_LISTENER:
            return self._refuse(kind)
        return bool(getattr(self, f"_{kind}")())

    def _one(self, sort: str) -> str | None:
        found = self._machine.named(sort)
        return self._dice.choice(found) if found else None

    def _kill(self, sort: str) -> bool:
        if (name := self._one(sort)) is None:
            return False
        self._machine.kill(name)
        self._later(self._dice.uniform(0.1, 1.5), lambda: self._machine.start(name))
        return True

    def _stop(self, sort: str) -> bool:
        """A worker or a clock past the lease of whatever it is sending; a web process for less long than an agent
        waits, or longer."""
        if (name := self._one(sort)) is None:
            return False
        self._machine.freeze(name)
        seconds = self._dice.uniform(1.0, 5.0) if sort == "web" else plan.LEASE_S + self._dice.uniform(0.5, 2.0)
        self._later(seconds, lambda: self._machine.thaw(name))
        return True

    def _refuse(self, kind: str) -> bool:
        url = self._dice.choice(list(self._machine.sandboxes.values()))
        content = {"fault": kind, "seconds": round(self._dice.uniform(0.3, 1.5), 1)}
        try:
            return self._http.send("POST", f"{url}/_control/faults", content, timeout_s=3)[0] == 201
        except asking.NoAnswer:
            return False

    def _flush_redis(self) -> bool:
        try:
            with redis.Redis.from_url(self._machine.redis_url, socket_timeout=2) as client:
                return bool(client.flushall())
        except redis.RedisError:
            return False

    def _kill_redis(self) -> bool:
        if "redis" in self._machine.down:
            return False
        self._machine.kill("redis")
        servers.socket_of(self._machine.redis_url).unlink(missing_ok=True)
        self._later(self._dice.uniform(0.2, 2.5), lambda: self._machine.start("redis"))
        return True

    def _kill_postgresql(self) -> bool:
        """While it is away everything of the main thread waits, too."""
        assert self._machine.postgresql is not None
        self._machine.postgresql.kill()
        time.sleep(self._dice.uniform(0.1, 1.0))
        self._machine.postgresql.start()
        return True

    def _sweeps_at_once(self) -> bool:
        """Two more, beside the clocks, at the same moment."""
        both = [self._machine.sweep(), self._machine.sweep()]

        def collect() -> None:
            for process in both:
                process.send_signal(signal.SIGTERM) if process.poll() is None else None
                process.wait()

        self._later(10.0, collect)
        return True
