"""What a policy file can hold: a table per model, a key per field. Derived from the models, so none is forgotten."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Final

from actions.models import Agent, Downstream, Kind

# In the order in which they are applied: each refers to those before it.
TABLES: Final[Mapping[str, Any]] = {"downstream": Downstream, "kind": Kind, "agent": Agent}
_NOT_IN_FILES: Final = {"id", "built_in", "tripped_at"}


def fields_of(table: str) -> dict[str, Any]:
    """Key → model field."""
    meta = TABLES[table]._meta
    every = [*meta.concrete_fields, *meta.many_to_many]
    return {field.name: field for field in every if field.name not in _NOT_IN_FILES}


@dataclass(frozen=True)
class Fault:
    """What is wrong, and where in the file: table, which of its rows (from 1), name if it has one, key."""

    message: str
    table: str = ""
    number: int = 0
    name: str = ""
    key: str = ""

    def __str__(self) -> str:
        row = self.name or (f"number {self.number}" if self.number else "")
        place = f"[[{self.table}]] {row}".strip() if self.table else ""
        where = ", ".join(part for part in (place, self.key) if part)
        return f"{where}: {self.message}" if where else self.message


class PolicyRefused(Exception):
    """The file can't be applied; nothing was changed. `faults` are all there are, in the file's order."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        order = ["", *TABLES]
        self.faults = sorted(
            faults,
            key=lambda fault: (order.index(fault.table) if fault.table in order else 0, fault.number),
        )
        super().__init__("\n".join(str(fault) for fault in self.faults))


def nearest(wrong: str, known: Iterable[str]) -> str:
    """`Did you mean "kind"?`, or all there are when nothing is like `wrong`."""
    names = sorted(known)
    if found := get_close_matches(wrong, names, n=1, cutoff=0.5):
        return f"Did you mean {found[0]}?"
    return f"There are: {', '.join(names)}." if names else "There are none yet."
