"""Asks until there is a usable answer or time is up. A request that is repeated is the same request, key and all."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Final

from landed_client.wire import Lost, Reply, Request, Steps, pause, send

# Answers that say nothing about the request itself: a proxy's, or a server's that broke down.
_SAYS_NOTHING: Final = frozenset({408, 421, 425, 429})
_LEAST_TRY_S: Final = 0.25


@dataclass(frozen=True)
class Setting:
    """`timeout`: seconds for a whole call, all tries included. `try_timeout`: for one try. The rest: for tests."""

    timeout: float = 30.0
    try_timeout: float = 10.0
    first_pause: float = 0.2
    longest_pause: float = 5.0
    clock: Callable[[], float] = time.monotonic
    jitter: Callable[[], float] = random.random


@dataclass(frozen=True)
class Asked:
    """What came of asking: the answer, or the last loss. `maybe_arrived`: some try without an answer may have."""

    came: Reply | Lost
    maybe_arrived: bool


Accepts = Callable[[Reply], bool]


def ask(request: Request, setting: Setting, *, within: float, accepts: Accepts) -> Steps[Asked]:
    """Sends `request` until a usable answer comes, for `within` seconds beside what each try may be held.

    `accepts`: whether a 2xx is about what was asked; another's answer is no answer.
    """
    until = setting.clock() + within
    maybe_arrived, tries = False, 0
    while True:
        began = setting.clock()
        left = max(_LEAST_TRY_S, min(setting.try_timeout, until - began))
        came = _judged((yield from send(request.within(left + request.wait))), accepts)
        if isinstance(came, Reply):
            return Asked(came, maybe_arrived)
        # Being held is what was asked for: it uses up none of the time for reaching Landed.
        until += min(setting.clock() - began, request.wait)
        maybe_arrived = maybe_arrived or came.sent
        rest = _rest(came, tries, setting)
        tries += 1
        if setting.clock() + rest + _LEAST_TRY_S > until:
            return Asked(came, maybe_arrived)
        yield from pause(rest)


def _rest(lost: Lost, tries: int, setting: Setting) -> float:
    """Exponential with full jitter on its upper half; never less than the server asked for."""
    longest = min(setting.longest_pause, setting.first_pause * 2.0**tries)
    return max(longest * (0.5 + setting.jitter() / 2), lost.retry_after or 0.0)


def _judged(came: Reply | Lost, accepts: Accepts) -> Reply | Lost:
    """The answer if it says anything, or what was lost with it."""
    if isinstance(came, Lost):
        return came
    if came.status in _SAYS_NOTHING or came.status >= 500:
        # A 429 is written before anything is looked at; what a 503 from a proxy has behind it, nobody knows.
        return Lost(f"HTTP {came.status}", sent=came.status != 429, retry_after=retry_after(came))
    if came.status < 300 and not accepts(came):
        return Lost(f"HTTP {came.status} with an answer that is not about this request")
    return came


def retry_after(reply: Reply) -> float | None:
    """The header Retry-After in seconds, from either of its forms (RFC 9110 §10.2.3)."""
    text = reply.headers.get("retry-after", "").strip()
    if not text:
        return None
    if text.isdecimal():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
        here = parsedate_to_datetime(reply.headers.get("date", ""))
    except (TypeError, ValueError):
        return None
    return max(0.0, (at - here).total_seconds())
