"""Puts a changed copy of a function of the product in its place, for a while.

The change is one of its source text. What is to be changed has to be there exactly once: a bug that no longer fits
the code is an error, and not one that was found. So is one that somebody would not meet: after the change nothing of
the product may hold the function as it was.
"""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from types import CellType, FunctionType
from typing import Any
from unittest.mock import patch

_OURS = ("actions", "reconciliation")
_EMPTY = CellType()


@dataclass(frozen=True)
class Change:
    """`where`: module:function, or module:Class.method. `old` becomes `new` in its source."""

    where: str
    old: str
    new: str


@dataclass(frozen=True)
class Bug:
    """`says`: what somebody thought who wrote it."""

    name: str
    says: str
    changes: tuple[Change, ...]
    allows: tuple[tuple[str, str, str], ...] = ()  # transitions that the status table would refuse: actor, from, to


@contextmanager
def applied(bug: Bug) -> Iterator[None]:
    with ExitStack() as stack:
        gone = [stack.enter_context(_changed(change)) for change in bug.changes]
        if holders := list(_holders(gone)):
            raise LookupError(f"{bug.name}: {', '.join(holders)} would still call what was changed")
        if bug.allows:
            stack.enter_context(_allowed(bug))
        yield


@contextmanager
def _allowed(bug: Bug) -> Iterator[None]:
    from actions.statuses import TRANSITIONS, Actor, Status

    more = {
        (Status(from_), Status(to)): TRANSITIONS.get((Status(from_), Status(to)), frozenset()) | {Actor(actor)}
        for actor, from_, to in bug.allows
    }
    with patch.dict(TRANSITIONS, more):
        yield


@contextmanager
def _changed(change: Change) -> Iterator[Any]:
    module_name, path = change.where.split(":")
    module = importlib.import_module(module_name)
    *outer, name = path.split(".")
    owner: Any = module
    for part in outer:
        owner = getattr(owner, part)
    was = inspect.getattr_static(owner, name)
    now = _rewritten(was, name, module, change)
    with ExitStack() as stack:
        stack.enter_context(patch.object(owner, name, now))
        for other in _also_called_so(module, name, was):
            stack.enter_context(patch.object(other, name, now))
        yield was


def _rewritten(was: Any, name: str, module: Any, change: Change) -> Any:
    function = was.fget if isinstance(was, property) else was
    # One that was changed already has no file.
    source = getattr(function, "_source", None) or textwrap.dedent(inspect.getsource(function))
    if source.count(change.old) != 1:
        raise LookupError(f"{change.where}: {change.old!r} is there {source.count(change.old)} times")
    found: dict[str, Any] = {}
    source = source.replace(change.old, change.new)
    exec(compile(source, f"<bug in {change.where}>", "exec", dont_inherit=True), module.__dict__, found)
    changed = found[name]
    (changed.fget if isinstance(changed, property) else changed)._source = source
    return changed


def _holders(gone: list[Any]) -> Iterator[str]:
    """Where in the product's modules one of these functions is still to be had: under another name, in a table, in a
    class, or inside another function."""
    ids = {id(was) for was in gone}
    for key, module in list(sys.modules.items()):
        if key.split(".")[0] in _OURS:
            yield from (f"{key}.{name}" for name, value in list(vars(module).items()) if _holds(value, ids, 4))


def _holds(value: Any, gone: set[int], depth: int) -> bool:
    if id(value) in gone:
        return True
    return depth > 0 and any(_holds(inner, gone, depth - 1) for inner in _inside(value))


def _inside(value: Any) -> Iterable[Any]:
    """What can be reached from a value in a module, as far as it is the product's own."""
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return list(value)
    if isinstance(value, partial):
        return [value.func, *value.args]
    if getattr(value, "__module__", None) is None or value.__module__.split(".")[0] not in _OURS:
        return ()
    if isinstance(value, type):
        return list(vars(value).values())
    if isinstance(value, property | staticmethod | classmethod):
        return [value.fget if isinstance(value, property) else value.__func__]
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or () if cell != _EMPTY]
        return [*cells, *(value.__defaults__ or ()), getattr(value, "__wrapped__", None)]
    return ()


def _also_called_so(module: Any, name: str, was: Any) -> list[Any]:
    """Modules that imported it by name."""
    found = [one for key, one in list(sys.modules.items()) if key.split(".")[0] in _OURS and one is not module]
    return [one for one in found if getattr(one, name, None) is was]
