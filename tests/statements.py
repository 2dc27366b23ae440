"""Which tests PostgreSQL need not run again: those that send it nothing that others don't.

    make choose

runs the suite on SQLite and notes, test by test, every statement with how it ended and whether its values were out of
the ordinary. From that it writes `tests/one_database.txt`: functions that `make test` leaves out on PostgreSQL. What
the list does not name runs on both, so a new test does. What may go: whoever is alone in the database, in a folder
where the database itself is not the point, as long as each thing it meets is met there by `MET_BY` others; whoever
alone meets something stays.
"""

from __future__ import annotations

import hashlib
import heapq
import inspect
import json
import os
import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from tests.plugin import ONE_DATABASE, asks_a_database, function_of

NOTES = "LANDED_STATEMENTS"  # the folder for notes; without it nothing is noted
MET_BY = 2
_STARTING_S = 0.03  # what a test costs besides its own seconds

# Here the database itself is the point, or other processes talk to it, which this one doesn't hear.
BOTH = re.compile(
    r"tests/(attack|blackbox|history|kill_points|running)/"
    r"|tests/core/test_(triggers|constraints|history|recording_races|found_tampering)"
)
# A test that says this is about what tells databases apart, or about several at once.
_ABOUT = re.compile(r"vendor|postgres|Thread|subprocess|deadlock|\bnul\b|x00", re.IGNORECASE)
_VALUES = re.compile(r"\((?:%s(?:::\w+)?, )*%s(?:::\w+)?\)")
_ROWS = re.compile(r"(\(\*\))(?:, \(\*\))+")
_NUMBER = re.compile(r"\b(?:s\d+_x)?\d+\b")
# What the database's own tests and test runners say to it; the product never does.
_NOT_OURS = re.compile(r"PRAGMA|sqlite_|TRIGGER|django_migrations|^(CREATE|DROP|ALTER) ")
_LONG = 2_000

Met = tuple[str, str, str]


# --- noting


class _Noting:
    def __init__(self, file: Path) -> None:
        self.file = file.open("a")
        self.met: set[Met] = set()
        self.threads: set[int] = set()
        self.skipped = False

    def wrap(self, name: str) -> None:
        send = getattr(CursorWrapper, name)

        def noted(cursor: Any, sql: Any, params: Any = None, *more: Any) -> Any:
            self.threads.add(threading.get_ident())
            ended = "broken off"
            try:
                found = send(cursor, sql, params, *more)
                ended = {0: "none", 1: "one"}.get(cursor.cursor.rowcount, "some")
                return found
            except Exception as error:
                ended = type(error).__name__
                raise
            finally:
                if not _NOT_OURS.search(text := str(sql)):
                    self.met.add((shape(text), ended, oddity(params)))

        setattr(CursorWrapper, name, noted)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.met.clear()
        self.threads.clear()
        self.skipped = False
        began = time.process_time()
        try:
            return (yield)
        finally:
            cost = time.process_time() - began
            note = {
                "function": function_of(item.nodeid),
                "could_run_again": asks_a_database(item),
                "about": _ABOUT.search(inspect.getsource(item.function)) is not None,
                "cpu_s": cost,
                "threads": len(self.threads),
                "skipped": self.skipped,
                "met": sorted(self.met),
            }
            self.file.write(json.dumps(note) + "\n")
            self.file.flush()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.skipped |= report.skipped


def shape(sql: str) -> str:
    """The statement without how many values and rows it has, and without numbers."""
    sql = _NUMBER.sub("#", _ROWS.sub(r"\1", _VALUES.sub("(*)", sql)))
    return hashlib.sha256(sql.encode()).hexdigest()[:16]


def oddity(values: Any) -> str:
    """Of values that databases are known to differ about."""
    if isinstance(values, str):
        odd = not values.isascii() or not values.isprintable() or len(values) > _LONG
        return "odd text" if odd else ""
    if isinstance(values, int | float):
        return "" if -(2**31) <= values < 2**31 else "big number"
    if isinstance(values, dict):
        values = [*values.values()]
    if isinstance(values, list | tuple):
        return max((oddity(value) for value in values), default="")
    return ""


def pytest_configure(config: pytest.Config) -> None:
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if (folder := os.environ.get(NOTES)) and worker:
        noting = _Noting(Path(folder) / f"{worker}.jsonl")
        noting.wrap("execute")
        noting.wrap("executemany")
        config.pluginmanager.register(noting)


# --- choosing


@dataclass
class Function:
    """All parameters of one test. `there`: whether it could run on the other database at all; `always`: whether it
    does, whatever it meets."""

    name: str
    cost: float = 0.0
    there: bool = False
    always: bool = False
    met: set[Met] = field(default_factory=set)


def read(folder: Path) -> list[Function]:
    found: dict[str, Function] = {}
    for file in folder.glob("*.jsonl"):
        for note in map(json.loads, file.read_text().splitlines()):
            name = note["function"]
            function = found.setdefault(name, Function(name))
            function.cost += note["cpu_s"] + _STARTING_S
            function.there |= note["could_run_again"]
            # What is skipped here is for there.
            function.always |= note["threads"] > 1 or note["skipped"] or note["about"] or bool(BOTH.search(name))
            function.met |= {(statement, ended, odd) for statement, ended, odd in note["met"]}
    return [found[name] for name in sorted(found)]


def choose(functions: list[Function]) -> set[str]:
    """Names of those that may be left out there: cheap ones that meet much stay first."""
    met = Counter(what for function in functions if function.there and function.always for what in function.met)

    def worth(function: Function) -> float:
        return sum(met[what] < MET_BY for what in function.met) / function.cost

    open_ = {function.name: function for function in functions if function.there and not function.always}
    heap = [(-worth(function), name) for name, function in open_.items()]
    heapq.heapify(heap)
    while heap:
        _, name = heapq.heappop(heap)
        now = worth(open_[name])
        if now and heap and -now > heap[0][0]:
            heapq.heappush(heap, (-now, name))
        elif now:
            met.update(open_.pop(name).met)
    return set(open_)


_HEAD = """\
# Functions that `make test` runs on SQLite alone: what they send to a database, others send to both.
# Written by `make choose` (tests/statements.py). What is not named here runs on both.
"""


def main() -> None:
    functions = read(Path(sys.argv[1]))
    names = choose(functions)
    ONE_DATABASE.write_text(_HEAD + "".join(f"{name}\n" for name in sorted(names)))
    again = [function for function in functions if function.there and function.name not in names]
    every = {what for function in functions for what in function.met}
    there = {what for function in again for what in function.met}
    print(f"{len(names)} functions on one database, {len(again)} on both")
    print(f"met by the suite: {len(every)}; on PostgreSQL as well: {len(there)}")


if __name__ == "__main__":
    main()
