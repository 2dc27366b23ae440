"""When the same key is sent again by machine, to find out what became of it. Pure.

Only for kinds that ask for it, and only while the downstream says that it carries out one key once and its window is
open: then the second sending brings the first one's answer, or does what the first did not. An answer that would
come again the same is not asked for again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from actions import policy
from actions.policy import Policy

# The downstream has answered; asking again brings the same answer.
_HEARD: Final = frozenset(
    {
        "key_used_otherwise",
        "duplicate_request",
        "answer_differs",
        "unknown_state",
        "unreadable_2xx",
        "connector_error",
        "redirect",
    }
)
STORED_ERROR: Final = "replayed_error"
# After so many stored errors, or refusals that prove nothing of the first sending, a person is asked.
ENOUGH: Final = 2


@dataclass(frozen=True)
class Sending:
    """What is known of one attempt: `harmless` when it is proven refused or not sent, `refused` the former."""

    harmless: bool
    refused: bool
    reason: str


def heard_enough(sendings: Sequence[Sending]) -> bool:
    """Whether repeating would only repeat what was heard: stored errors or refusals, again and again."""
    stored = sum(one.reason == STORED_ERROR for one in sendings)
    return stored >= ENOUGH or sum(one.refused for one in _replays(sendings)) >= ENOUGH


def _replays(sendings: Sequence[Sending]) -> Sequence[Sending]:
    """Those after the first one that may have arrived."""
    first = next((number for number, one in enumerate(sendings) if not one.harmless), None)
    return () if first is None else sendings[first + 1 :]


def next_at(
    rules: Policy,
    sendings: Sequence[Sending],
    *,
    first_maybe_sent_at: datetime | None,
    deadline_ms: int,
    now: datetime,
) -> datetime | None:
    """When to send the same key again; None: never by machine. `sendings`: all attempts, in order."""
    if rules.replay != "in_window" or not sendings or sendings[-1].reason in _HEARD or heard_enough(sendings):
        return None
    made = len(_replays(sendings))
    if made >= len(rules.replay_schedule):
        return None
    at = now + timedelta(seconds=rules.replay_schedule[made])
    until = last_moment(rules, first_maybe_sent_at, deadline_ms=deadline_ms)
    return at if until is not None and at < until else None


def safe_until(
    rules: Policy, first_maybe_sent_at: datetime | None, *, dedupes: bool, window_s: int | None
) -> datetime | None:
    """Until when the same key may be sent again by whoever holds it, as was declared when the intent was recorded and
    as is declared now (`dedupes`, `window_s`); None: it may not."""
    until = policy.replay_safe_until(rules, first_maybe_sent_at)
    if until is None or first_maybe_sent_at is None or not dedupes or window_s is None:
        return None
    return min(until, first_maybe_sent_at + timedelta(seconds=window_s))


def last_moment(
    rules: Policy, first_maybe_sent_at: datetime | None, *, deadline_ms: int, window_s: int | None = None
) -> datetime | None:
    """The last moment at which sending the same key again may begin; None: there is none.

    A whole deadline before the window ends, so that the request arrives inside it. `window_s`: what the downstream
    declares by now, where that is less than it was.
    """
    until = policy.replay_safe_until(rules, first_maybe_sent_at)
    if until is None or first_maybe_sent_at is None:
        return None
    if window_s is not None:
        until = min(until, first_maybe_sent_at + timedelta(seconds=window_s))
    return until - timedelta(milliseconds=deadline_ms)
