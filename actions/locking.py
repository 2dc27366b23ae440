"""How rows are locked, in one place."""

from typing import TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)


def for_change(model: type[M], *, skip_locked: bool = False) -> QuerySet[M]:
    """Rows that stay locked until the transaction ends (on SQLite the immediate transaction is the lock).

    Themselves only, not what they are joined with: intents share policy snapshots, and locking those would make
    all intents of a kind wait for each other. NO KEY: rows that refer to them can be inserted meanwhile.
    """
    return model._default_manager.select_for_update(no_key=True, of=("self",), skip_locked=skip_locked)
