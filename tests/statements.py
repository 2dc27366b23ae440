"""Which tests PostgreSQL need not run again: those that send it nothing that others don't.

    make choose

runs the suite on SQLite and notes, test by test, every statement with how it ended and whether its values were out of
the ordinary. From that it writes `tests/one_database.txt`: what `make test` leaves out on PostgreSQL, tests or
functions with all their parameters. What the list does not name runs on both, so a new test does. What may go:
whoever is alone in the database, in a folder where the database itself is not the point, as long as each thing it
meets is met there by another; whoever alone meets something stays.
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
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from django.db.backends.utils import CursorWrapper

from tests.plugin import ONE_DATABASE, asks_a_database, function_of

NOTES = "LANDED_STATEMENTS"  # the folder for notes; without it nothing is noted
_STARTING_S = 0.03  # what a test costs besides its own seconds

# Here the database itself is the point, or other processes talk to it, which this one doesn't hear.
BOTH = re.compile(
    r"tests/(history|kill_points|running)/"
    r"|tests/attack/test_(kills|locks|one_effect|redis|stale_facts)"
    r"|tests/core/test_(triggers|constraints|recording_races|found_tampering)"
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
                "name": item.nodeid,
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


@dataclass(frozen=True)
class Noted:
    """One test. `there`: whether it could run on the other database at all; `always`: whether it does, whatever it
    meets."""

    name: str
    cost: float
    there: bool
    always: bool
    met: frozenset[Met]


def read(folder: Path) -> list[Noted]:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text().splitlines()]
    return sorted(map(_noted, map(json.loads, lines)), key=attrgetter("name"))


def _noted(note: dict[str, Any]) -> Noted:
    # What is skipped here is for there.
    always = note["threads"] > 1 or note["skipped"] or note["about"] or BOTH.search(note["name"]) is not None
    met = frozenset((statement, ended, odd) for statement, ended, odd in note["met"])
    return Noted(note["name"], note["cpu_s"] + _STARTING_S, note["could_run_again"], always, met)


def choose(tests: list[Noted]) -> set[str]:
    """Names of those that may be left out there: cheap ones that meet much stay first."""
    met = {what for test in tests if test.there and test.always for what in test.met}

    def worth(test: Noted) -> float:
        return len(test.met - met) / test.cost

    open_ = {test.name: test for test in tests if test.there and not test.always}
    heap = [(-worth(test), name) for name, test in open_.items()]
    heapq.heapify(heap)
    while heap:
        _, name = heapq.heappop(heap)
        now = worth(open_[name])
        if now and heap and -now > heap[0][0]:
            heapq.heappush(heap, (-now, name))
        elif now:
            met |= open_.pop(name).met
    return set(open_)


def lines(tests: list[Noted], left_out: set[str]) -> list[str]:
    """A function of which nothing stays is one line."""
    stays = {function_of(test.name) for test in tests if test.there and test.name not in left_out}
    return sorted({name if function_of(name) in stays else function_of(name) for name in left_out})


_HEAD = """\
# Tests that `make test` runs on SQLite alone: what they send to a database, others send to both.
# Written by `make choose` (tests/statements.py). What is not named here runs on both.
"""


def main() -> None:
    tests = read(Path(sys.argv[1]))
    left_out = choose(tests)
    ONE_DATABASE.write_text(_HEAD + "".join(f"{line}\n" for line in lines(tests, left_out)))
    again = [test for test in tests if test.there and test.name not in left_out]
    every = {what for test in tests for what in test.met}
    there = {what for test in again for what in test.met}
    print(f"{len(left_out)} tests on one database, {len(again)} on both")
    print(f"met by the suite: {len(every)}; on PostgreSQL as well: {len(there)}")


if __name__ == "__main__":
    main()
