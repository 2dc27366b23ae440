"""Applies a file: what is written is what was shown, all of it or nothing."""

from collections.abc import Callable
from typing import Any, Final

from django.db import IntegrityError, transaction

from actions.models import Kind
from actions.policy_files import shown
from actions.policy_files.planning import Change, Plan, make_plan
from actions.policy_files.reading import Document
from actions.policy_files.tables import Fault, PolicyRefused, fields_of

_TRIES: Final = 5
_MAX_REASON: Final = 100  # what history takes


def apply(document: Document, *, reason: str, show: Callable[[Plan], None]) -> Plan:
    """Shows what will change, then changes it; history says `reason` and no person.

    Nothing is shown while rows are locked: whoever reads the diff in a pager would stop the workers. So the plan is
    made again under the locks, and shown again if somebody changed a row in between.

    Raises PolicyRefused; nothing was changed then.
    """
    told: Plan | None = None
    clash: IntegrityError | None = None
    for _ in range(_TRIES):
        plan = make_plan(document, lock=False)
        if told is None or not _same(plan, told):
            show(plan)
        told = plan
        if not plan.pending:
            return plan
        try:
            with transaction.atomic():
                locked = make_plan(document, lock=True)
                if _same(locked, told):
                    for change in locked.pending:
                        _save(change, _shorten(reason))
                    return locked
        except IntegrityError as error:  # somebody made a row of that name meanwhile
            clash = error
    why = f" ({clash})" if clash else ""
    raise PolicyRefused([Fault(f"Somebody else keeps changing the same policy{why}. Try again.")])


def _same(one: Plan, other: Plan) -> bool:
    return shown.lines_of(one) == shown.lines_of(other)


def _shorten(reason: str) -> str:
    return reason if len(reason) <= _MAX_REASON else f"{reason[:20]}…{reason[-(_MAX_REASON - 21) :]}"


def _save(change: Change, reason: str) -> None:
    instance = change.instance
    instance._change_reason, instance._history_user = reason, None
    columns = [name for name in change.fields if not fields_of(change.table)[name].many_to_many]
    if change.before is None:
        instance.save(force_insert=True)
        _set_kinds(change)
        return
    # Kinds first, so that the one row of history that the saving writes shows them.
    instance.skip_history_when_saving = True
    _set_kinds(change)
    del instance.skip_history_when_saving
    # Only what changes: columns that machines write meanwhile are left as they are.
    instance.save(update_fields=columns or ["name"])


def _set_kinds(change: Change) -> None:
    if change.table == "agent" and "kinds" in change.fields:
        agent: Any = change.instance
        agent.kinds.set(Kind.objects.filter(name__in=change.after["kinds"]))
