"""Pieces of work that can be left and taken up again, and killed, wherever the outside world is touched.

A task is a greenlet that runs the product's own code. It pauses before a transaction begins, after one was committed,
and around everything on the network: these are the points at which other processes, time and death can come between.
Inside a transaction nothing comes between: SQLite has one writer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context

from greenlet import getcurrent, greenlet


class Crash(BaseException):
    """The process is gone: no handler runs, and nothing that it knew is left. Not an Exception, so that nothing in
    the product takes it for a fault that it could handle."""


class Task(greenlet):
    """`act` runs when the task is first resumed. `where`: what it is about to do, or has just done."""

    def __init__(self, name: str, act: Callable[[], object]) -> None:
        super().__init__(act)
        # It has the database of whoever begins it. A greenlet begins with an empty context, and while an event loop
        # runs in this thread (Playwright's does, once a test has opened a browser) Django keeps its connections in
        # the context: a task would open one of its own, to another database, and find nothing there to break.
        self.gr_context = copy_context()
        self.name, self.where = name, "begins"
        self.frozen = 0  # for so many steps nobody resumes it: its process was stopped

    def resume(self) -> None:
        """Goes on until the next pause, or to the end."""
        self.switch()
        if self.dead:
            self.where = "done"

    def crash(self) -> None:
        """Kills it where it is."""
        with suppress(Crash):
            self.throw(Crash)
        self.where = "crashed"


def pause(where: str) -> None:
    """Lets others go first. Outside of tasks (a test that looks at the database) nobody is waited for."""
    task = getcurrent()
    if isinstance(task, Task):
        task.where = where
        task.parent.switch()


def current() -> str:
    """The name of the task that runs; "" outside of any."""
    task = getcurrent()
    return task.name if isinstance(task, Task) else ""
