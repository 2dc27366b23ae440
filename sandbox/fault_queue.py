"""Faults ordered and not yet used up. Every function works inside the caller's transaction."""

import sqlite3
from dataclasses import dataclass

from sandbox.faults import FAULTS, Fault, Target


@dataclass(frozen=True)
class OrderedFault:
    """A fault waiting for requests of its order."""

    seq: int
    fault: Fault
    seconds: float


def order_fault(db: sqlite3.Connection, *, order: str, name: str, seconds: float | None, times: int) -> None:
    db.execute(
        "INSERT INTO faults (order_ref, name, seconds, times_left) VALUES (?, ?, ?, ?)",
        (order, name, seconds, times),
    )


def next_fault(
    db: sqlite3.Connection, order: str, target: Target, *, later_page: bool = False
) -> OrderedFault | None:
    """The fault that the next request for this order meets: the oldest one ordered that fits it."""
    for row in db.execute("SELECT * FROM faults WHERE order_ref = ? ORDER BY seq", (order,)):
        fault = FAULTS[row["name"]]
        if fault.target == target and (later_page or fault.name != "ledger_page_2_error"):
            seconds = row["seconds"] if row["seconds"] is not None else fault.seconds
            return OrderedFault(row["seq"], fault, seconds or 0)
    return None


def use_fault(db: sqlite3.Connection, ordered: OrderedFault) -> None:
    """Count one hit; the last one takes the fault away."""
    db.execute("UPDATE faults SET times_left = times_left - 1 WHERE seq = ?", (ordered.seq,))
    db.execute("DELETE FROM faults WHERE seq = ? AND times_left <= 0", (ordered.seq,))


def take_back(db: sqlite3.Connection, order: str) -> int:
    """Forget what the order still waits for; returns how many orderings that were."""
    return db.execute("DELETE FROM faults WHERE order_ref = ?", (order,)).rowcount


def list_faults(db: sqlite3.Connection) -> list[dict[str, object]]:
    rows = db.execute("SELECT order_ref, name, seconds, times_left FROM faults ORDER BY seq")
    return [
        {
            "order": row["order_ref"],
            "fault": row["name"],
            "seconds": row["seconds"],
            "times": row["times_left"],
        }
        for row in rows
    ]
