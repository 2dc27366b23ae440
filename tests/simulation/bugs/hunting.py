"""Looks for a bug with seed after seed."""

from __future__ import annotations

from dataclasses import dataclass

from tests.simulation.bugs import deciding, finding, sending
from tests.simulation.bugs.changing import Bug, applied
from tests.simulation.running import Plan, Ran, Stage, run

BUGS: dict[str, Bug] = {bug.name: bug for bug in (*sending.BUGS, *finding.BUGS, *deciding.BUGS)}


@dataclass(frozen=True)
class Hunt:
    """`found`: the first run that breaks an invariant; None: not within so many seeds."""

    bug: Bug
    seeds: int
    found: Ran | None


def hunt(here: Stage, bug: Bug, *, most: int, begin: int = 0) -> Hunt:
    with applied(bug):
        for number in range(most):
            if (ran := run(here, Plan(begin + number))).violation is not None:
                return Hunt(bug, number + 1, ran)
    return Hunt(bug, most, None)
