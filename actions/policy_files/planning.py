"""What applying a file would change, judged as the admin judges it. Reads the database, writes nothing."""

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from django.core.exceptions import ValidationError

from actions import pausing, policy_changes
from actions.canonical import canonical
from actions.locking import for_change
from actions.models import Agent, Downstream, Kind
from actions.policy_files.reading import Document, Row
from actions.policy_files.tables import TABLES, Fault, PolicyRefused, fields_of, nearest


@dataclass(frozen=True)
class Change:
    """One row that the file names: its fields before (None: there is no such row) and after."""

    table: str
    name: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any]
    named: frozenset[str]
    instance: Any = field(compare=False, repr=False)  # as it would be saved

    @property
    def fields(self) -> list[str]:
        """Those that would change."""
        return [name for name, value in self.after.items() if self.before is None or differ(self.before[name], value)]

    @property
    def left(self) -> list[str]:
        """What the file doesn't name of a row that exists, where it is not the default."""
        if self.before is None:
            return []
        defaults = _state(TABLES[self.table]())
        return [name for name in self.after if name not in self.named and differ(self.after[name], defaults[name])]


@dataclass(frozen=True)
class Plan:
    changes: tuple[Change, ...]
    left_alone: Mapping[str, tuple[str, ...]]  # table → names that the database has and the file has not
    warnings: tuple[str, ...]

    @property
    def pending(self) -> list[Change]:
        return [change for change in self.changes if change.fields]


def differ(one: Any, other: Any) -> bool:
    """Unlike `!=`, this tells true from 1 inside JSON."""
    return _exact(one) != _exact(other)


def _exact(value: Any) -> str:
    try:
        return canonical(value)
    except ValueError:  # an integer past 2^53, stored by other means
        return repr(value)


def make_plan(document: Document, *, lock: bool) -> Plan:
    """Compares `document` with the database.

    With `lock` (inside a transaction) the rows it names stay locked, so that the plan holds until the commit.

    Raises PolicyRefused with everything that is wrong, that which reading found included.
    """
    known = {table: _by_name(model, document, table, lock=lock) for table, model in TABLES.items()}
    # A row of the file that is not stored yet can be referred to, too.
    instances = {(row.table, row.name): known[row.table].get(row.name) for row in document.rows}
    made = _Instances(known)
    changes = [_change(row, instances[row.table, row.name], made) for row in _in_order(document.rows)]
    faults = [*document.faults, *made.faults]
    if faults:
        raise PolicyRefused(faults)
    return Plan(
        tuple(changes),
        {table: tuple(sorted(set(known[table]) - _names(document, table))) for table in TABLES},
        tuple(_warnings(changes)),
    )


def _by_name(model: Any, document: Document, table: str, *, lock: bool) -> dict[str, Any]:
    found = {row.name: row for row in model._default_manager.all()}
    if lock:
        wanted = _names(document, table)
        # By primary key, and all before the first write: two that run at once can't wait for each other.
        found |= {row.name: row for row in for_change(model).filter(name__in=wanted).order_by("pk")}
    return found


def _names(document: Document, table: str) -> set[str]:
    return {row.name for row in document.rows if row.table == table}


def _in_order(rows: Iterable[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (list(TABLES).index(row.table), row.name))


def _state(instance: Any) -> dict[str, Any]:
    """Field → value; related rows as their names."""
    found: dict[str, Any] = {}
    for name, of_model in fields_of(instance._meta.model_name).items():
        if of_model.many_to_many:
            saved = instance.pk is not None
            found[name] = sorted(getattr(instance, name).values_list("name", flat=True)) if saved else []
        elif of_model.is_relation:
            related = getattr(instance, name, None)
            found[name] = related.name if related else ""
        else:
            found[name] = getattr(instance, name)
    return found


class _Instances:
    """The rows as they would be, and what is wrong with them."""

    def __init__(self, known: dict[str, dict[str, Any]]) -> None:
        self.rows = {table: dict(by_name) for table, by_name in known.items()}
        self.faults: list[Fault] = []


def _change(row: Row, stored: Any, made: _Instances) -> Change:
    before = None if stored is None else _state(stored)
    instance = TABLES[row.table]() if stored is None else copy(stored)
    after = dict(before) if before is not None else _state(instance)
    bad = set(row.bad)
    for key, value in row.values.items():
        of_model = fields_of(row.table)[key]
        if of_model.is_relation and not _related(row, key, of_model, made):
            bad.add(key)
        elif not of_model.is_relation:
            setattr(instance, key, value)
        elif not of_model.many_to_many:
            setattr(instance, key, made.rows[of_model.related_model._meta.model_name][value])
        after[key] = value
    made.faults += _faults(row, stored, instance, bad, kinds=made.rows["kind"])
    made.rows[row.table][row.name] = instance
    return Change(row.table, row.name, before, after, frozenset(row.values), instance)


def _related(row: Row, key: str, of_model: Any, made: _Instances) -> bool:
    """Whether every row that `key` names exists or is made by the file."""
    table = of_model.related_model._meta.model_name
    value = row.values[key]
    unknown = [name for name in (value if of_model.many_to_many else [value]) if name not in made.rows[table]]
    made.faults += [
        row.fault(key, f"There is no {table} {name!r}, here or in the file. {nearest(name, made.rows[table])}")
        for name in unknown
    ]
    return not unknown


def _faults(row: Row, stored: Any, instance: Any, bad: set[str], *, kinds: Iterable[str]) -> Iterator[Fault]:
    """As the admin's forms find them; nothing twice, and nothing about fields that could not be read."""
    told = set(bad)
    for found in (
        _of_model(instance, bad),
        _of_policy(instance, kinds),
        _of_pausing(instance),
        _of_change(stored, instance),
    ):
        for key, messages in found.items():
            if key not in told:
                place = key if key in fields_of(row.table) else ""
                yield from (row.fault(place, message) for message in messages)
        told |= set(found)


def _of_model(instance: Any, bad: set[str]) -> dict[str, list[str]]:
    # A downstream that the same file makes has no primary key yet; that it exists was looked at before.
    unsaved = {f.name for f in instance._meta.concrete_fields if f.is_relation and _is_unsaved(instance, f.name)}
    try:
        # Not its uniqueness: rows are told by name, and a name that somebody else takes right now is for the
        # database to find, so that the plan is made anew.
        instance.full_clean(exclude=bad | unsaved, validate_unique=False)
    except ValidationError as wrong:
        return dict(wrong.message_dict)
    return {}


def _is_unsaved(instance: Any, name: str) -> bool:
    related = getattr(instance, name, None)
    return related is not None and related.pk is None


def _of_policy(instance: Any, kinds: Iterable[str]) -> dict[str, list[str]]:
    if isinstance(instance, Agent):
        return policy_changes.faults_of_agent(instance, kinds=kinds)
    if isinstance(instance, Kind):
        return policy_changes.faults_of_kind(instance)
    if not isinstance(instance, Downstream):
        return {}
    try:
        return policy_changes.faults_of_downstream(instance)
    except (ImportError, AttributeError) as broken:
        return {"connector": [f"The installed connector {instance.connector} can't be loaded: {broken}."]}


def _of_pausing(instance: Any) -> dict[str, list[str]]:
    wrong = pausing.fault(paused=instance.paused, reason=instance.pause_reason)
    return {"pause_reason": [wrong]} if wrong else {}


def _of_change(stored: Any, instance: Any) -> dict[str, list[str]]:
    if isinstance(stored, Downstream):
        return _unless_empty("identity", policy_changes.refuse_stranding(stored, instance))
    if isinstance(stored, Kind):
        return _unless_empty("downstream", policy_changes.refuse_moving(stored, instance))
    return {}


def _unless_empty(key: str, messages: list[str]) -> dict[str, list[str]]:
    return {key: messages} if messages else {}


def _warnings(changes: Iterable[Change]) -> Iterator[str]:
    for change in changes:
        if change.table == "downstream" and change.fields:
            yield from policy_changes.warnings_about_downstream(change.instance)
