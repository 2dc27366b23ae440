"""Everything that is chance or time in the product, replaced by what the seed says. Only inside a simulation."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch
from uuid import UUID

from actions import canonical, claiming, dispatch, jobs, phases, recording, saving, services, times, transport
from reconciliation import checks, look_back, orphans
from tests.simulation import tasks
from tests.simulation.clock import Clock


class Chance:
    """Stands in for `secrets` and for `uuid_utils`."""

    def __init__(self, dice: random.Random, clock: Clock) -> None:
        self._dice, self._clock = dice, clock

    def token_hex(self, size: int = 32) -> str:
        return self._dice.getrandbits(8 * size).to_bytes(size, "big").hex()

    token_urlsafe = token_hex

    def uuid7(self) -> UUID:
        """RFC 9562 §5.7: 48 bits of Unix time in milliseconds, the version, and bits of chance."""
        at = int(self._clock.now().timestamp() * 1_000)
        return UUID(
            int=(at << 80)
            | (0x7 << 76)
            | (self._dice.getrandbits(12) << 64)
            | (0b10 << 62)
            | self._dice.getrandbits(62)
        )


class _Monotonic:
    """Stands in for the module `time`: a look may not last for ever by this clock either."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def monotonic(self) -> float:
        return self._clock.boot()

    def sleep(self, seconds: float) -> None:
        raise AssertionError("nothing sleeps in a simulation")


def _who() -> str:
    return f"sim/{tasks.current() or 'nobody'}"


@contextmanager
def replaced(
    dice: random.Random, clock: Clock, send: Callable[[transport.Call, transport.Limits], transport.Reply]
) -> Iterator[None]:
    """`dice` is for what the product draws itself: keys, salts, tokens. `send` is the network."""
    chance, machine = Chance(dice, clock), _Monotonic(clock)
    places: list[tuple[Any, str, Any]] = [
        (times, "now", clock.now),
        (phases, "boot_clock", clock.boot),
        (transport, "boot_clock", clock.boot),
        (transport, "send", send),
        (canonical, "secrets", chance),
        (services, "secrets", chance),
        (recording, "uuid_utils", chance),
        (saving, "time", machine),
        (checks, "time", machine),
        (look_back, "time", machine),
        # Redis is a doorbell: nobody hears it here, and whoever looks at the database finds the same.
        (jobs, "ring", lambda _: False),
        # Django's own hooks would run it inside the transaction's end; there is nothing to ring.
        *((module, "worker_id", _who) for module in (dispatch, claiming, saving)),
        (orphans._Turn, "after", 0),
    ]
    with ExitStack() as stack:
        for target, name, value in places:
            stack.enter_context(patch.object(target, name, value))
        yield
