"""A plan for people: every field that changes, old and new. Text from the database is made safe to look at."""

import json
import re
from collections.abc import Iterator
from typing import Any

from actions import visible
from actions.policy_files import leaks, values
from actions.policy_files.planning import Change, Plan, differ
from actions.policy_files.tables import TABLES

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_ABSENT = object()


def lines_of(plan: Plan) -> list[str]:
    """The whole diff, a line each. Two plans with the same lines do the same."""
    found = [line for table in TABLES for change in plan.changes if change.table == table for line in _of(change)]
    found += [
        f"not in the file, left alone: {table} {', '.join(names)}"
        for table, names in plan.left_alone.items()
        if names
    ]
    found += [f"warning: {text}" for text in plan.warnings]
    return [*found, _summary(plan)]


def _summary(plan: Plan) -> str:
    created = sum(change.before is None for change in plan.pending)
    changed = len(plan.pending) - created
    return f"{created} created, {changed} changed, {len(plan.changes) - len(plan.pending)} unchanged"


def _of(change: Change) -> Iterator[str]:
    what = f"{change.table} {change.name}"
    if change.before is None:
        yield f"{what}: created"
        for name, value in change.after.items():
            yield from (f"    {path} = {text}" for path, text in _flat(name, _written(change.table, name, value)))
        return
    yield f"{what}: {'changed' if change.fields else 'unchanged'}"
    for name in change.fields:
        yield from _difference(change.table, name, change.before[name], change.after[name])
    for name in change.left:
        yield from (
            f"    (not in the file) {p} = {t}"
            for p, t in _flat(name, _written(change.table, name, change.after[name]))
        )


def _difference(table: str, name: str, before: Any, after: Any) -> Iterator[str]:
    old, new = (dict(_flat(name, _written(table, name, value))) for value in (before, after))
    differing = [
        path for path in [*old, *(path for path in new if path not in old)] if old.get(path) != new.get(path)
    ]
    for path in differing:
        yield f"    {path}: {old.get(path, '(not set)')} → {new.get(path, '(not set)')}"
    if not differing and differ(before, after):
        yield f"    {name}: {visible.plain(repr(before))} → {visible.plain(repr(after))}"


def _written(table: str, name: str, value: Any) -> Any:
    found = value
    if name == "limits":
        found = values.agent_limits_as_written(value) if table == "agent" else values.limits_as_written(value)
    return leaks.mask(name, found)


def _flat(path: str, value: Any) -> Iterator[tuple[str, str]]:
    """(path, text) of each leaf; a list of plain values is one leaf."""
    if isinstance(value, dict) and value:
        for name, inner in sorted(value.items()):  # PostgreSQL keeps no order of its own
            key = name if _BARE.fullmatch(name) else visible.plain(json.dumps(name, ensure_ascii=False))
            yield from _flat(f"{path}.{key}", inner)
    elif isinstance(value, list) and any(isinstance(inner, dict | list) for inner in value):
        for number, inner in enumerate(value):
            yield from _flat(f"{path}[{number}]", inner)
    else:
        text = values.NONE if value is None else json.dumps(value, ensure_ascii=False)
        yield path, visible.plain(text)
