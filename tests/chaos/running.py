"""One run: noise, quiet, comparison."""

import sqlite3
import time
from collections import Counter
from dataclasses import dataclass

import psycopg

from tests.chaos import books, compare, compare_decisions, faults, machine, orders, reviewers, telling
from tests.chaos.agents import Agents
from tests.chaos.compare import Difference, Known
from tests.chaos.machine import Machine
from tests.chaos.plan import QUIET_S, Plan
from tests.chaos.reviewers import Desk
from tests.chaos.tally import Tally

AWAY = (psycopg.Error, sqlite3.Error)
# So many unsettled ones at once, and the agents wait: the load is what the machine can do.
_MOST_HANGING = 200
_LOOK_S = 0.5


def kinds(wanted: Plan) -> tuple[str, ...]:
    """Every fault that has to come at least once."""
    ordered = (*orders.OF_SENDING, *orders.OF_THE_LEDGER, *orders.BY_HAND)
    return (*faults.kinds(wanted.database), *ordered, *orders.OF_AGENTS, *reviewers.KINDS)


@dataclass
class _Run:
    wanted: Plan
    machine: Machine
    tally: Tally
    agents: Agents
    desk: Desk
    injector: faults.Injector

    def noise(self) -> float:
        """Until the time is over and nothing is missing; returns how long it took."""
        began = looked = time.monotonic()
        self.injector.begin()
        self.agents.begin()
        self.desk.begin()
        while True:
            self.injector.step()
            time.sleep(0.05)
            if time.monotonic() - looked > _LOOK_S:
                looked = time.monotonic()
                self.machine.look_around()
                self._hold_back()
                if looked - began > (self.wanted.latest if self._missing() else self.wanted.seconds):
                    return looked - began

    def _missing(self) -> list[str]:
        few = sum(bool(one.told) for one in self.agents.book.attempted) < self.wanted.at_least
        return [kind for kind, many in self.counted().items() if not many] + (["intents"] if few else [])

    def _hold_back(self) -> None:
        try:
            hanging = len(books.Tables(self.machine).ask(books.HANGING))
        except AWAY:
            return
        (self.agents.open.clear if hanging > _MOST_HANGING else self.agents.open.set)()

    def counted(self) -> Counter[str]:
        """What hit, of every kind: of the services' faults what they wrote down themselves."""
        found = Counter(dict.fromkeys(self.tally.counts, 0))
        found.update(self.tally.counts)
        found.update(books.faults_hit(self.machine))
        left = books.faults_left(self.machine)
        for name in orders.OF_THE_LEDGER:
            found[name] = self.agents.book.ordered[name] - left[name]
        return found

    def quiet(self) -> float:
        """Everything runs and nothing fails, until nothing hangs; returns how long it took."""
        began = time.monotonic()
        self.injector.end()
        self.desk.end()
        self.agents.end(within_s=QUIET_S / 2)
        while time.monotonic() - began < QUIET_S:
            self.machine.revive()
            try:
                ask = books.Tables(self.machine).ask
                if not ask(books.HANGING) and not ask(books.WAITING):
                    break
            except AWAY:
                pass
            time.sleep(0.25)
        return time.monotonic() - began


def run(wanted: Plan, *, keep: bool = False) -> int:
    """Prints how it went; 0 when nothing differed, no kind of fault was missing and the load was enough."""
    print(f"chaos on {wanted.database}, seed {wanted.seed}, {wanted.seconds:.0f} s", flush=True)
    with machine.running(wanted, keep=keep) as here:
        tally = Tally(kinds(wanted))
        agents, desk = Agents(wanted, here, tally), Desk(here, tally, seed=wanted.seed)
        ran = _Run(wanted, here, tally, agents, desk, faults.Injector(wanted, here, tally))
        noise = ran.noise()
        rest = ran.quiet()
        return _judge(ran, noise, rest)


def _judge(ran: _Run, noise: float, rest: float) -> int:
    ran.machine.rest()
    found = books.read(ran.machine)
    _tell_load(ran, found, noise, rest)
    failed = _tell_faults(ran)
    if len(found.intents) < ran.wanted.at_least:
        print(f"FAILED: {len(found.intents):,} intents; at least {ran.wanted.at_least:,} were to be")
        failed = True
    differences = _compare(Known(found, ran.agents.book, ran.desk.decided), ran.desk.wrong)
    code, words = ran.machine.verify()
    print(f"  {'history verifies':<36} {'yes' if not code else 'NO'}  {words.splitlines()[-1] if words else ''}")
    if code:
        differences.append(Difference(f"history does not verify:\n{words}"))
    if differences:
        print("\n".join(telling.tell(differences, found, ran.machine)))
        print("\nwhat was done to the processes:\n" + "\n".join(ran.injector.told))
    print(
        f"{'FAILED' if differences or failed else 'passed'}: seed {ran.wanted.seed}, {ran.wanted.database}",
        flush=True,
    )
    return 1 if differences or failed else 0


def _tell_load(ran: _Run, found: books.Books, noise: float, rest: float) -> None:
    statuses = Counter(row["status"] for row in found.intents.values())
    asked = sum(row["in_review"] for row in found.intents.values())
    refused = Counter(one.refused for one in ran.agents.book.attempted if one.refused)
    took_effect = sum(row["choice"] == "effect" for row in found.decisions)
    tries = sum(one.tries for one in ran.agents.book.attempted)
    attempted, wanted = len(ran.agents.book.attempted), ran.wanted.intents
    print(f"noise {noise:.0f} s, quiet after {rest:.0f} s more")
    print(f"intents   {len(found.intents):,} of {attempted:,} attempted in {tries:,} requests; aimed at {wanted:,}")
    print(f"          {_words(statuses)}; in review {asked}; refused: {_words(refused)}")
    print(
        f"reviews   {len(found.reviews):,}; decisions {len(ran.desk.decided):,}, of which took effect {took_effect:,}"
    )
    print(f"          the desk's answers: {_words(ran.desk.answers)}")
    if ran.machine.ended:
        print(f"ended by themselves and started again: {_words(Counter(ran.machine.ended))}")


def _words(counted: Counter[str]) -> str:
    return ", ".join(f"{name} {many:,}" for name, many in counted.most_common()) or "none"


def _tell_faults(ran: _Run) -> bool:
    """Whether a kind is missing."""
    counted = ran.counted()
    width = max(len(kind) for kind in counted)
    print("faults")
    for kind, many in counted.items():
        print(f"  {kind:<{width}} {many:>7,}")
    missing = [kind for kind, many in counted.items() if not many]
    if missing:
        print(f"FAILED: never injected: {', '.join(missing)}")
    return bool(missing)


def _compare(known: Known, wrong: list[str]) -> list[Difference]:
    print("books")
    differences = [Difference(words) for words in wrong]
    for comparison in (*compare.COMPARISONS, *compare_decisions.COMPARISONS):
        found = list(comparison(known))
        print(f"  {comparison.__name__.replace('_', ' '):<36} {'yes' if not found else f'NO: {len(found)} differ'}")
        differences += found
    return differences
