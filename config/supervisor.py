"""Runs child processes until told to stop, and starts again what dies."""

import logging
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from config import children

log = logging.getLogger(__name__)

_LOOK_EVERY_S = 0.1
# A part that dies is started again at once the first time, then after twice as long each time …
_FIRST_WAIT_S, _LONGEST_WAIT_S = 0.2, 5.0
# … until it has lived for so long.
_SOUND_AFTER_S = 20.0


class Stopped(Exception):
    """We were told to stop while still starting."""


class NotReady(Exception):
    """A part died or did not answer while starting; the message holds the end of its log."""


@dataclass
class Part:
    """One child process. `answers`: whether it does its work; `last`: others need it until they are gone."""

    name: str
    command: Sequence[str]
    env: dict[str, str] = field(default_factory=dict)
    log: Path | None = None
    answers: Callable[[], bool] | None = None
    last: bool = False
    process: subprocess.Popen[bytes] | None = None
    _started_at: float = 0.0
    _wait_s: float = _FIRST_WAIT_S
    _start_at: float | None = None

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def start(self) -> None:
        self.process = children.start(self.command, env=self.env, log=self.log)
        self._started_at, self._start_at = time.monotonic(), None

    def is_alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def revive(self) -> None:
        """Starts it again when it is dead and its wait is over. Called again and again."""
        if self.is_alive():
            return
        now = time.monotonic()
        if self._start_at is None:
            assert self.process is not None
            children.signal_group(self.process, signal.SIGKILL)  # what it started must not hold its port
            if now - self._started_at > _SOUND_AFTER_S:
                self._wait_s = _FIRST_WAIT_S
            log.warning("%s ended (%s); again in %.1f s", self.name, _how(self.process), self._wait_s)
            self._start_at, self._wait_s = now + self._wait_s, min(_LONGEST_WAIT_S, self._wait_s * 2)
        if now >= self._start_at:
            self.start()

    def last_words(self) -> str:
        if self.log is None or not self.log.exists():
            return ""
        return self.log.read_text(errors="replace")[-2000:]


def _how(process: subprocess.Popen[bytes]) -> str:
    code = process.returncode
    return signal.Signals(-code).name if code and code < 0 else f"exit code {code}"


class Supervisor:
    """Owns its parts from the main thread: the kernel ends them with it."""

    def __init__(self, *, grace_s: float) -> None:
        self.parts: list[Part] = []
        self._grace_s = grace_s
        self._stop = threading.Event()

    def obey_signals(self) -> None:
        """From here on SIGTERM and SIGINT stop everything."""

        def stop(*_: int | FrameType | None) -> None:
            self._stop.set()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)

    def start(self, *parts: Part) -> None:
        """Starts parts side by side and returns when all of them answer. Raises NotReady or Stopped."""
        self.launch(*parts)
        self.await_answers()

    def launch(self, *parts: Part) -> None:
        """Starts parts without waiting for them."""
        for part in parts:
            self.parts.append(part)
            part.start()

    def await_answers(self, within_s: float = 60.0) -> None:
        """Returns when every part that was started answers. Raises NotReady or Stopped."""
        until = time.monotonic() + within_s
        waiting = list(self.parts)
        while waiting:
            self.check_stop()
            for part in waiting:
                if not part.is_alive():
                    raise NotReady(f"{part.name} ended while starting.\n{part.last_words()}")
            waiting = [part for part in waiting if part.answers and not part.answers()]
            if waiting and time.monotonic() > until:
                raise NotReady(f"{waiting[0].name} does not answer.\n{waiting[0].last_words()}")
            if waiting:
                self._stop.wait(_LOOK_EVERY_S / 2)

    def check_stop(self) -> None:
        if self._stop.is_set():
            raise Stopped

    def watch(self) -> None:
        """Keeps the parts alive until we are told to stop."""
        while not self._stop.wait(_LOOK_EVERY_S):
            for part in self.parts:
                part.revive()

    def stop(self) -> None:
        """Ends all parts with their process groups; those that others need, last."""
        for last in (False, True):
            running = {part.process: part for part in self.parts if part.last is last and part.process}
            for process in children.stop(running, grace_s=1.0 if last else self._grace_s):
                log.warning("%s did not stop in time and was killed", running[process].name)
