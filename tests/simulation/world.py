"""What one run is made of: clock, network, services with their true books, and what everybody remembers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from actions.models import Agent, Intent, Kind
from tests.simulation.clock import Clock
from tests.simulation.downstream import Effect, Payments
from tests.simulation.network import Network, Request
from tests.simulation.policies import Cast, services
from tests.simulation.tasks import Task


class Violation(Exception):
    """An invariant does not hold. `name`: which one; the text says what was seen."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


@dataclass
class Asked:
    """What an agent has written down before it calls, so that a crash between loses no key of its own."""

    agent: Agent
    kind: Kind
    subject: str
    amount: str
    request_key: str
    executor: str
    token: str | None = None
    send_before: datetime | None = None
    intent_id: UUID | None = None  # once it was told
    begun: bool = False  # a caller's own note: from here on it may have sent


@dataclass(frozen=True)
class Hook:
    """A webhook that the service means to send: one entry as it was. `number`: of those about this entry."""

    id: str
    payments: Payments
    body: bytes
    entry: str
    number: int


@dataclass
class World:
    seed: int
    cast: Cast
    dice: random.Random
    clock: Clock = field(default_factory=Clock)
    kinds: list[Kind] = field(default_factory=list)
    undo_s: int = 0
    alike: float = 0.5  # how often somebody asks for what was asked for before
    menu: dict[Callable[[World], None], int] = field(default_factory=dict)
    crashes: float = 0.04  # of all steps
    stops: float = 0.04
    payments: dict[str, Payments] = field(default_factory=services)
    tasks: list[Task] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    hooks: list[Hook] = field(default_factory=list)
    late: list[Hook] = field(default_factory=list)  # those that come when all is over
    # What is stopped, since when it was for certain: ("kind", its name), or ("subject", its name) for a stop.
    stopped: dict[tuple[str, str], datetime] = field(default_factory=dict)
    undone: set[int] = field(default_factory=set)  # decisions that somebody was told are taken back
    faults: list[Violation] = field(default_factory=list)
    trace: list[str] = field(default_factory=list)
    numbers: dict[str, int] = field(default_factory=dict)
    on_first_byte: Callable[[Request], None] = lambda _: None
    network: Network = field(init=False)

    def __post_init__(self) -> None:
        self.network = Network(self.dice, self.clock, self.payments, self._first_byte, self.tell)

    def _first_byte(self, request: Request) -> None:
        self.on_first_byte(request)

    def tell(self, text: str) -> None:
        self.trace.append(f"{self.clock.elapsed_s:9.3f}  {text}")

    def number(self, what: str) -> int:
        self.numbers[what] = self.numbers.get(what, 0) + 1
        return self.numbers[what]

    def violated(self, name: str, text: str) -> None:
        """Inside a task nothing is raised: the product's own handlers would have it."""
        self.faults.append(Violation(name, text))

    def payments_of(self, intent: Intent) -> Payments:
        return self.payments[intent.downstream.name]

    def done(self, intent: Intent) -> list[Effect]:
        """What was really done for an intent, and stands or may yet."""
        return [effect for effect in self.payments_of(intent).of(intent.idempotency_key) if effect.live]

    def forward(self, seconds: float) -> None:
        """Time passes for everybody; what is on its way arrives within its time, or never."""
        self.network.before(self.clock.boot() + seconds)
        self.clock.forward(seconds)
