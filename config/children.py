"""Child processes that never outlive us, whatever ends us.

Knows nothing of Django: the tests start their servers with it before any settings exist.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO

ROOT = Path(__file__).resolve().parent.parent
_PR_SET_PDEATHSIG = 1
# Looked up once, here: between fork and exec nothing may be imported or allocated at length.
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def die_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Makes the kernel send this process `number` when `parent` dies (Linux; elsewhere only `stop` does)."""
    if _prctl is None:
        return
    _prctl(_PR_SET_PDEATHSIG, int(number))
    if os.getppid() != parent:  # it died before we asked
        os.kill(os.getpid(), number)


def start(
    command: Sequence[str],
    *,
    env: Mapping[str, str] | None = None,
    log: Path | None = None,
    stdout: int | IO[bytes] | None = None,
    user: str | None = None,
    death_signal: int = signal.SIGKILL,
) -> subprocess.Popen[bytes]:
    """Starts `command` in a session of its own, with stdout and stderr appended to `log` (None: ours).

    To be called from a thread that lives as long as the process: the kernel takes the thread for the parent.
    `stdout`, when given, goes elsewhere than stderr. `env` is added to our own environment.
    """
    parent = os.getpid()

    def before_exec() -> None:
        die_with(parent, death_signal)

    sink = log.open("ab") if log else None
    try:
        return subprocess.Popen(
            list(command),
            cwd=ROOT,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=stdout if stdout is not None else sink,
            stderr=sink,
            start_new_session=True,
            preexec_fn=before_exec,  # noqa: PLW1509  see above: nothing but two system calls
            user=user,
            extra_groups=[] if user else None,
        )
    finally:
        if sink:
            sink.close()


def signal_group(process: subprocess.Popen[bytes], number: int) -> None:
    """Signals the child and whatever it started. The leader may be gone already; its group may not."""
    try:
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        return


def stop(
    processes: Iterable[subprocess.Popen[bytes]], *, grace_s: float = 3.0, number: int = signal.SIGTERM
) -> list[subprocess.Popen[bytes]]:
    """Asks all of them to end, waits `grace_s` seconds together, then kills what is left of their groups.

    Returns those that did not end by themselves.
    """
    stopping = list(processes)
    for process in stopping:
        if process.poll() is None:
            signal_group(process, number)
    wait_until(lambda: all(process.poll() is not None for process in stopping), within_s=grace_s)
    late = [process for process in stopping if process.poll() is None]
    for process in stopping:
        signal_group(process, signal.SIGKILL)
    for process in stopping:
        process.wait()
    return late


def wait_until(done: Callable[[], bool], *, within_s: float, every_s: float = 0.02) -> bool:
    """Whether `done()` became true within `within_s` seconds."""
    until = time.monotonic() + within_s
    while not done():
        if time.monotonic() >= until:
            return False
        time.sleep(every_s)
    return True
