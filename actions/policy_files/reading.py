"""From a file's text to rows, without the database; what is wrong with it is gathered, not raised one by one."""

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from actions.policy_files import leaks, values
from actions.policy_files.tables import TABLES, Fault, PolicyRefused, fields_of, nearest

_TOKENS = "Tokens are never in a file: `manage.py create_token AGENT` makes one and shows it once."
_LEAK = (
    "This is, or looks like, a secret. Put it into the environment of web and workers, and the NAME of the variable "
    "here, as secret_env; in headers of http_json write {secret}."
)


@dataclass(frozen=True)
class Row:
    """What the file says of one row: the fields that it names and that could be read; `bad`: those that could not."""

    table: str
    number: int
    name: str
    values: dict[str, Any]
    bad: frozenset[str]

    def fault(self, key: str, message: str) -> Fault:
        return Fault(message, self.table, self.number, self.name, key)


@dataclass(frozen=True)
class Document:
    rows: tuple[Row, ...]
    faults: tuple[Fault, ...] = field(default=())


def read(text: str) -> Document:
    """Raises PolicyRefused only for what is not TOML."""
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as wrong:
        raise PolicyRefused([Fault(f"This is not TOML: {wrong}.")]) from None
    except RecursionError:
        raise PolicyRefused([Fault("This is nested too deeply.")]) from None
    faults: list[Fault] = []
    rows: list[Row] = []
    for table, content in tables.items():
        if fault := _table_fault(table, content):
            faults.append(fault)
            continue
        for number, keys in enumerate(content, 1):
            row, wrong_here = _row(table, number, keys)
            rows.append(row)
            faults += wrong_here
    return Document(tuple(rows), (*faults, *_doubled(rows)))


def _table_fault(table: str, content: Any) -> Fault | None:
    if table in ("token", "tokens"):
        return Fault(_TOKENS, key=table)
    if table not in TABLES:
        return Fault(f"There is no such table. {nearest(table, TABLES)}", key=table)
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        return Fault(f"Write each one as a table of its own, under [[{table}]].", key=table)
    return None


def _row(table: str, number: int, keys: dict[str, Any]) -> tuple[Row, list[Fault]]:
    known = fields_of(table)
    found: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []
    leaking = {key: list(leaks.find(key, value)) for key, value in keys.items()}
    for key, value in keys.items():
        problems += [(path, _LEAK) for path in leaking[key]]
        if key in known:
            try:
                found[key] = values.read(known[key], leaks.mask(key, value) if leaking[key] else value)
            except values.BadValue as wrong:
                problems += [(_join(key, path), message) for path, message in wrong.problems]
        elif not leaking[key]:
            problems.append((key, _unknown(key, known)))
    name = found.get("name", "")
    bad = {key for key in keys if key in known and key not in found}
    if not name and "name" not in bad:
        problems.append(("name", "It is missing: rows are told by their names."))
        bad.add("name")
    # A masked value stays in `values`, so that the rest of it is checked too.
    return (
        Row(table, number, name, found, frozenset(bad)),
        [Fault(message, table, number, name, path) for path, message in problems],
    )


def _join(key: str, path: str) -> str:
    return f"{key}{path}" if path.startswith("[") or not path else f"{key}.{path}"


def _unknown(key: str, known: dict[str, Any]) -> str:
    if key in ("token", "tokens"):
        return _TOKENS
    return f"There is no such key. {nearest(key, known)}"


def _doubled(rows: list[Row]) -> Iterator[Fault]:
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if row.name and (row.table, row.name) in seen:
            yield row.fault("name", "The file has this name twice.")
        seen.add((row.table, row.name))
