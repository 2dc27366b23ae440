"""Pauses: machines send nothing of an agent, of a kind, or to a downstream. What each stops is in docs/stops.md.

A pause is two columns of the row that it stops, so the very next claim meets it. Who, when and why is the row's
history (django-simple-history); nothing else keeps it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import OuterRef, Q, QuerySet, Subquery, TextChoices, Value
from django.db.models.functions import Coalesce

from actions import spelling
from actions.errors import Invalid, NotFound
from actions.locking import for_change
from actions.models import Agent, Downstream, Kind

Pausable = Agent | Kind | Downstream


class PauseScope(TextChoices):
    """What can be paused; the value is also the name of the intent's column."""

    AGENT = "agent", "agent"
    KIND = "kind", "kind"
    DOWNSTREAM = "downstream", "downstream"


MODELS: Final[Mapping[str, Any]] = {"agent": Agent, "kind": Kind, "downstream": Downstream}
# What the history takes as the reason of one change.
MAX_REASON: Final = 100
NO_REASON: Final = "Say why it is paused: whoever is stopped by it will ask."
NO_REASON_TO_RESUME: Final = "Say why it may go on: whoever paused it will ask."


@dataclass(frozen=True)
class Change:
    """One row of history in which something was paused, or went on. `seen`: its number; `by`: None for a program."""

    seen: int
    paused: bool
    reason: str
    by: User | None
    at: datetime
    program: str = ""


@dataclass(frozen=True)
class Changed:
    """What came of pausing or resuming. Not `changed`: somebody was faster, and `newest` says who and why."""

    row: Pausable
    changed: bool
    newest: Change | None


def fault(*, paused: bool, reason: str) -> str:
    """What is wrong with a pause, whoever sets it: the desk, the admin, or a policy file. Empty: nothing."""
    return NO_REASON if paused and not reason.strip() else ""


def find(scope: str, name: str) -> Pausable:
    """The agent, kind or downstream of that name. Raises NotFound."""
    found: Pausable | None = MODELS[scope].objects.filter(name=name).first() if scope in MODELS else None
    if found is None:
        raise NotFound(f"There is no {scope} {name}." if scope in MODELS else "")
    return found


def pause(scope: str, name: str, *, reason: str, person: User) -> Changed:
    """Pauses it. Paused already, it stays as it is. Raises NotFound, and Invalid for `reason`."""
    reason = _tidy(reason, missing=NO_REASON)
    with transaction.atomic():
        row = _locked(scope, name)
        if row.paused:
            return Changed(row, False, newest(row))
        row.paused, row.pause_reason = True, reason
        _save(row, person, reason)
        return Changed(row, True, newest(row))


def resume(scope: str, name: str, *, reason: str, person: User, seen: int | None = None) -> Changed:
    """Lets it go on. `seen`: the pause that the person read about (`Change.seen`); another one stays.

    Raises NotFound, and Invalid for `reason`.
    """
    reason = _tidy(reason, missing=NO_REASON_TO_RESUME)
    with transaction.atomic():
        row = _locked(scope, name)
        last = newest(row)
        if not row.paused or (seen is not None and last is not None and last.seen != seen):
            return Changed(row, False, last)
        row.paused, row.pause_reason = False, ""
        _save(row, person, reason)
        return Changed(row, True, newest(row))


def pause_by_program(row: Pausable, *, reason: str, by: str, also: Sequence[str] = ()) -> None:
    """A program pauses `row`, which its caller holds locked and has found running. `by`: what people read as who it
    was; `also`: other columns that change with it."""
    row.paused, row.pause_reason = True, reason
    row._history_user, row._change_reason = None, by  # type: ignore[union-attr]  # both for django-simple-history
    row.save(update_fields=["paused", "pause_reason", *also])


def _locked(scope: str, name: str) -> Pausable:
    row = find(scope, name)
    found: Pausable = for_change(MODELS[scope]).get(pk=row.pk)
    return found


def _save(row: Pausable, person: User, reason: str) -> None:
    row._history_user = person  # type: ignore[union-attr]  # both for django-simple-history
    row._change_reason = reason  # type: ignore[union-attr]
    row.save(update_fields=["paused", "pause_reason"])


def _tidy(reason: str, *, missing: str) -> str:
    reason = spelling.tidy(reason).strip()
    if not reason:
        raise Invalid.field("reason", missing)
    if len(reason) > MAX_REASON:
        raise Invalid.field("reason", f"At most {MAX_REASON} characters.")
    if wrong := spelling.fault(reason):
        raise Invalid.field("reason", f"It {wrong}.")
    return reason


def newest(row: Pausable) -> Change | None:
    """When it was paused, or went on, the last time; None when nobody ever changed that."""
    changes = _changes(type(row)).filter(id=row.pk).order_by("-history_id")
    first = changes.first()
    return _change(first) if first is not None else None


def newest_of(scope: str, rows: QuerySet[Any]) -> dict[int, Change]:
    """The same for many: primary key → the newest change. Two queries."""
    model = MODELS[scope]
    last = _changes(model).filter(id=OuterRef("pk")).order_by("-history_id").values("history_id")[:1]
    wanted = [number for number in rows.values_list(Subquery(last), flat=True) if number is not None]
    found = model.history.model.objects.filter(pk__in=wanted).select_related("history_user")
    return {row.id: _change(row) for row in found}


def lately(scope: str, *, most: int) -> list[tuple[str, Change]]:
    """The newest changes of all of them, as (name, change), newest first."""
    found = _changes(MODELS[scope]).select_related("history_user").order_by("-history_id")[:most]
    return [(row.name, _change(row)) for row in found]


def _changes(model: Any) -> QuerySet[Any]:
    """The rows of history that paused something or let it go on; a new row that begins paused is one."""
    rows = model.history.model.objects
    before = rows.filter(id=OuterRef("id"), history_id__lt=OuterRef("history_id")).order_by("-history_id")
    was = Coalesce(Subquery(before.values("paused")[:1]), Value(False))
    found: QuerySet[Any] = rows.annotate(was=was)
    return found.filter(Q(paused=True, was=False) | Q(paused=False, was=True))


def _change(row: Any) -> Change:
    said = row.history_change_reason or ""
    by = row.history_user
    return Change(
        seen=row.history_id,
        paused=row.paused,
        reason=row.pause_reason if row.paused else (said if by is not None else ""),
        by=by,
        at=row.history_date,
        program="" if by is not None else said,
    )
