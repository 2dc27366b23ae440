"""The header Prefer: wait=N (RFC 7240 §4.3), and holding an answer for it."""

import re
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from actions import guidance, times, waiting
from actions.api import showing
from actions.guidance import Step
from actions.models import Agent

_NAME: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_WORD: Final = rf'(?:{_NAME}|"(?:[^"\\]|\\.)*")'
_PARAMETER: Final = rf"{_NAME}(?:[ \t]*=[ \t]*{_WORD})?"
# preference = token [ BWS "=" BWS word ] *( OWS ";" [ OWS parameter ] )
_PREFERENCE: Final = re.compile(
    rf"[ \t]*(?P<name>{_NAME})(?:[ \t]*=[ \t]*(?P<word>{_WORD}))?"
    rf"(?:[ \t]*;(?:[ \t]*{_PARAMETER})?)*[ \t]*(?:,|$)"
)
_SECONDS: Final = re.compile(r'"?([0-9]{1,9})"?', re.ASCII)
_MAX_HEADER: Final = 1_000
# For whoever finds all places taken, in seconds.
_COME_AGAIN_S: Final = 2


def wait_s(header: str | None) -> int | None:
    """The seconds that `wait` asks for, at most 30; None without it or where it is malformed (RFC 7240 §2: ignored).

    Of several the first one counts.
    """
    at, text = 0, (header or "")[:_MAX_HEADER]
    while at < len(text):
        found = _PREFERENCE.match(text, at)
        if found is None:
            return None
        if found["name"].lower() == "wait":
            seconds = _SECONDS.fullmatch(found["word"] or "")
            return min(int(seconds[1]), waiting.LONGEST_S) if seconds else None
        at = found.end()
    return None


def hold(request: HttpRequest, agent: Agent, intent_id: UUID, answer: Callable[[], HttpResponse]) -> HttpResponse:
    """`answer()` once there is something else to do than to wait, or when the preferred time is over.

    Whoever has to send, to report, or to leave it to a person is told so at once: waiting for oneself never ends.
    """
    return hold_while(
        request,
        answer,
        wait=lambda seconds: _wait(agent, intent_id, seconds),
        in_vain=lambda: _must_wait(agent, intent_id),
    )


def hold_while(
    request: HttpRequest,
    answer: Callable[[], HttpResponse],
    *,
    wait: Callable[[int], None],
    in_vain: Callable[[], bool],
) -> HttpResponse:
    """`answer()`, after `wait(seconds)` if the request prefers that and there is a place to wait.

    `in_vain`: whether there is nothing to see yet, so that somebody without a place should come again.
    """
    seconds = wait_s(request.headers.get("Prefer"))
    if seconds is None:
        return answer()
    with waiting.place() as taken:
        if taken:
            wait(seconds)
    found = answer()
    if taken:
        found["Preference-Applied"] = f"wait={seconds}"
    elif in_vain():
        found["Retry-After"] = str(_COME_AGAIN_S)
    return found


def _wait(agent: Agent, intent_id: UUID, seconds: int) -> None:
    until = time.monotonic() + seconds
    while (before := waiting.seen_of(intent_id)) is not None and _must_wait(agent, intent_id):
        if not waiting.until_moved(intent_id, before, until=until):
            return


def _must_wait(agent: Agent, intent_id: UUID) -> bool:
    intent = showing.visible(agent, intent_id)
    return guidance.next_step(showing.situation(intent, now=times.now(), viewer=agent)) is Step.WAIT
