"""In which order the queue is shown, and where its next page begins: keyset pagination over what is open."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from django.db.models import Q, QuerySet
from django.db.models.functions import Coalesce

from reconciliation.models import Review
from reconciliation.reviews import claiming
from reconciliation.views import paging

# Since when the outcome is open: since when the intent is what it is; of an entry, since there is a case.
SINCE = Coalesce("intent__status_since", "opened_at")
_BIGGEST = 2**63


@dataclass(frozen=True)
class Order:
    """`columns`: by which, `-` downwards; the last is the primary key, so that the order is total."""

    title: str
    columns: tuple[str, ...]


ORDERS: Mapping[str, Order] = {
    "due": Order("those whose customer waits, then as they are due", claiming.ORDER),
    "stake": Order("most at stake first", ("-stake", "due_at", "id")),
    "age": Order("open for longest first", ("since", "id")),
}
DEFAULT = "due"


def ordered(found: QuerySet[Review], order: str, after: str) -> QuerySet[Review]:
    """What comes behind the cursor `after`; from the start for one that is none, or of another order."""
    columns = ORDERS[order].columns
    if "since" in columns:
        found = found.alias(since=SINCE)
    values = _read(columns, after)
    if values is not None:
        found = found.filter(_behind(columns, values))
    return found.order_by(*columns)


def cursor(order: str, last: Review, since: datetime) -> str:
    """`since`: as SINCE says of it."""
    values = {"since": since} | {name: getattr(last, name) for name in ("customer_waiting", "due_at", "stake", "id")}
    return paging.encode(*(_written(values[column.lstrip("-")]) for column in ORDERS[order].columns))


def _written(value: Any) -> str | int:
    return value.isoformat() if isinstance(value, datetime) else int(value)


def _read(columns: Sequence[str], after: str) -> list[Any] | None:
    parts = paging.decode(after, parts=len(columns)) if after else None
    if parts is None:
        return None
    try:
        return [_READ[column.lstrip("-")](part) for column, part in zip(columns, parts, strict=True)]
    except (ValueError, OverflowError):
        return None


def _whole(part: str | int) -> int:
    if not isinstance(part, int) or not 0 <= part < _BIGGEST:
        raise ValueError
    return part


def _moment(part: str | int) -> datetime:
    found = datetime.fromisoformat(str(part))
    if found.tzinfo is None:
        raise ValueError
    return found.astimezone(UTC)


_READ: Mapping[str, Callable[[str | int], Any]] = {
    "customer_waiting": lambda part: bool(_whole(part)),
    "due_at": _moment,
    "since": _moment,
    "stake": _whole,
    "id": _whole,
}


def _behind(columns: Sequence[str], values: Sequence[Any]) -> Q:
    """All that sorts behind `values`. It begins with a bound on the first column that an index can start from."""
    column, value = columns[0], values[0]
    name, down = column.lstrip("-"), column.startswith("-")
    if len(columns) == 1:
        return Q(**{f"{name}__{'lt' if down else 'gt'}": value})
    same = Q(**{name: value}) & _behind(columns[1:], values[1:])
    if isinstance(value, bool):
        return same | Q(**{name: False}) if value else same
    beyond = Q(**{f"{name}__{'lt' if down else 'gt'}": value})
    return Q(**{f"{name}__{'lte' if down else 'gte'}": value}) & (beyond | same)
