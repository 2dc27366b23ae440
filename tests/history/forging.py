"""What a forger does who can write to every table and knows how digests are made."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from actions import history
from actions.models import Intent
from actions.statuses import SETTLED
from tests.flushing import without_triggers


class _Undo(Exception):
    pass


@contextmanager
def forged(forge: Callable[[], object]) -> Iterator[None]:
    """The database as the forger leaves it; afterwards it is as before."""
    with suppress(_Undo), without_triggers():
        forge()
        yield
        raise _Undo


def delete(rows: Any) -> None:
    rows._raw_delete(rows.db)


def cut_off(intent: Intent, keep: int) -> None:
    """Deletes all rows but the first `keep`, and makes the intent agree."""
    rows = history.rows_of(intent.pk)
    for row in rows[keep:]:
        delete(type(row)._default_manager.filter(pk=row.pk))
    Intent.objects.filter(pk=intent.pk).update(chain_length=keep, chain_head=rows[keep - 1].digest)
    _agree(intent)


def write_anew(intent: Intent, **first: Any) -> None:
    """Changes columns of the first row and makes every digest of the chain fit."""
    rows = history.rows_of(intent.pk)
    for name, value in first.items():
        setattr(rows[0], name, value)
    head = rows[0].previous
    for row in rows:
        row.previous = head
        row.digest = head = history.link_digest(row)
        changed = {"previous": row.previous, "digest": row.digest} | (first if row is rows[0] else {})
        type(row)._default_manager.filter(pk=row.pk).update(**changed)
    Intent.objects.filter(pk=intent.pk).update(chain_head=head)


def _agree(intent: Intent) -> None:
    last = intent.transitions.order_by("sequence").last()
    assert last is not None
    open_ = {} if last.to_status in SETTLED else {"settled_at": None, "settled_by": ""}
    Intent.objects.filter(pk=intent.pk).update(status=last.to_status, version=last.sequence, **open_)


def delete_whole(intent: Intent) -> None:
    for row in history.rows_of(intent.pk):
        delete(type(row)._default_manager.filter(pk=row.pk))
    delete(intent.evidence.all())
    delete(Intent.objects.filter(pk=intent.pk))
