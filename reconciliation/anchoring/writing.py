"""Writes an anchor over everything that the database holds at one moment."""

import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from actions import history, snapshot, times
from actions.models import Intent
from reconciliation.anchoring import files, keys
from reconciliation.models import Purpose, Review
from reconciliation.reviews.verifying import Anchored

_PATTERN: Final = "anchor-*.jsonl"
_CHUNK: Final = 5_000
# Nobody writes at one for so long, in seconds.
_LEFT_S: Final = 86_400


@dataclass(frozen=True)
class Written:
    """The file, its digest, and how many chains it holds."""

    path: Path
    digest: str
    intents: int
    cases: int


def write(to: Path) -> Written:
    """Writes an anchor to the file `to`; it binds the newest other one in that folder.

    Raises keys.BadKey, FileExistsError and other OSErrors. Nobody waits for it, however long it takes.
    """
    key = keys.private_key(own_key())
    with snapshot.one_moment():
        head = _head(times.now(), newest(to.parent))
        digest = files.write(to, head, _chains(), key)
    return Written(to, digest, head["intents"], head["cases"])


def write_into(folder: Path) -> Written:
    """The same into a folder, named by its time."""
    folder.mkdir(parents=True, exist_ok=True)
    return write(folder / f"anchor-{times.now():%Y%m%dT%H%M%S%fZ}.jsonl")


def own_key() -> Path:
    """Where the key is that anchors are signed with. The demo makes its own. Raises keys.BadKey."""
    if not settings.LANDED_ANCHOR_KEY:
        raise keys.BadKey("LANDED_ANCHOR_KEY names no key. Make one with: manage.py anchor_history --new-key FILE")
    path = Path(settings.LANDED_ANCHOR_KEY)
    if settings.MODE == "demo" and not path.exists():
        with suppress(keys.BadKey):  # another clock makes it at this moment
            keys.make(path)
    return path


def newest(folder: Path) -> Path | None:
    return max(folder.glob(_PATTERN), key=lambda path: path.name, default=None)


def thin_out(folder: Path, *, keep: int) -> None:
    """Deletes all but the newest `keep` (at least one)."""
    for old in sorted(folder.glob(_PATTERN), key=lambda path: path.name)[: -max(1, keep)]:
        old.unlink(missing_ok=True)
    # What somebody who was killed over it left.
    for begun in folder.glob(".anchor-*.tmp"):
        if time.time() - begun.stat().st_mtime > _LEFT_S:
            begun.unlink(missing_ok=True)


def _head(now: datetime, before: Path | None) -> dict[str, Any]:
    return {
        "made_at": now.isoformat(timespec="microseconds"),
        "intents": Intent.objects.count(),
        "cases": _cases().count(),
        "rows": {model._meta.db_table: model._default_manager.count() for model in history.chained_models()},
        "previous": None if before is None else {"name": before.name, "digest": files.digest_of(before)},
    }


def _chains() -> Iterator[tuple[str, Anchored]]:
    columns = ("pk", "chain_length", "chain_head")
    for row in Intent.objects.order_by("pk").values_list(*columns).iterator(_CHUNK):
        yield files.INTENT, Anchored(*row)
    for case in _cases().order_by("pk").values_list(*columns).iterator(_CHUNK):
        yield files.CASE, Anchored(*case)


def _cases() -> Any:
    return Review.objects.filter(purpose=Purpose.ENTRY)
