"""Rows that are written once: their place in a chain of digests."""

import json
from datetime import UTC, datetime
from typing import Any

from django.db import models


class Chained(models.Model):
    """A row of an intent's history (or of an orphan's review).

    All history of one owner, of whatever table, forms one chain: `position` counts from 1, `previous` is the
    digest of the row before (position 1: of the owner's own unchanging fields), and `digest` covers `previous`
    and every field that `chained()` lists. `actions.history` writes and verifies it.
    """

    position = models.PositiveIntegerField()
    previous = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    at = models.DateTimeField()

    class Meta:
        abstract = True

    CHAINED: tuple[str, ...] = ()
    # Columns that came later: covered where they are set, so that rows from before keep their digests.
    CHAINED_IF_SET: tuple[str, ...] = ()

    def chained(self) -> dict[str, Any]:
        """The fields that the digest covers, as plain JSON values."""
        found: dict[str, Any] = {"table": self._meta.db_table}
        for name in ("position", "at", *self.CHAINED):
            found[name] = plain(getattr(self, name))
        for name in self.CHAINED_IF_SET:
            if (value := getattr(self, name)) not in (None, ""):
                found[name] = plain(value)
        return found


def plain(value: Any) -> str | int | bool | None:
    """A column's value as digests see it: the same before it is stored and after it is read, on every database."""
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    return str(value)


def evidence_refs(text: str) -> list[tuple[int, str]]:
    """The `(id, digest)` pairs that a history row's `evidence` column holds."""
    return [(int(number), str(digest)) for number, digest in json.loads(text or "[]")]
