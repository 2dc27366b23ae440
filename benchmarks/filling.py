"""Fills a database with a history of any size, quickly: rows that real ones were copied from, in SQL.

The rows differ only in their keys, their order number and their time; what is open stays a fixed number, because that
is what the pages are about.
"""

from collections.abc import Mapping
from typing import Any

from django.db import connection, models

from actions.models import Attempt, Evidence, Intent, Transition
from reconciliation.models import LedgerEntry, Match, Review, ReviewReason

# Generated ids begin here, far above those that are made one by one.
_FIRST = 10_000_000
_TABLES: tuple[type[models.Model], ...] = (
    Intent,
    Evidence,
    Attempt,
    Transition,
    LedgerEntry,
    Match,
    Review,
    ReviewReason,
)


def fill(template: Intent, number: int) -> None:
    """Copies a settled intent `number` times, with its evidence, attempt, transitions, entry, match and case."""
    with connection.cursor() as cursor:
        for table in _TABLES:
            for row in _rows_of(table, template):
                _copy(cursor, row, number)
        cursor.execute("ANALYZE")


def _rows_of(table: type[models.Model], template: Intent) -> list[models.Model]:
    found: dict[type[models.Model], Mapping[str, Any]] = {
        Intent: {"pk": template.pk},
        LedgerEntry: {"matches__intent": template},
        ReviewReason: {"review__intent": template},
    }
    rows = table._default_manager.filter(**found.get(table, {"intent": template}))
    return list(rows.order_by("pk"))


def _copy(cursor: Any, row: models.Model, number: int) -> None:
    names, expressions, values = [], [], []
    for field in row._meta.concrete_fields:
        names.append(connection.ops.quote_name(field.column))
        expression = _expression(row, field)
        expressions.append(expression or "%s")
        if expression is None:
            values.append(field.get_db_prep_save(getattr(row, field.attname), connection))
    table = connection.ops.quote_name(row._meta.db_table)
    cursor.execute(
        f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(expressions)} FROM {_numbers(number)}", values
    )


def _expression(row: models.Model, field: Any) -> str | None:
    """SQL for a column that differs from copy to copy, by its number `g`; None: the template's own value."""
    per_intent = 8  # at most so many rows of one table per intent
    if field.column in ("id", "intent_id") and _is_uuid(field):
        return _uuid("g")
    if field.primary_key:
        nth = row._meta.concrete_model._default_manager.filter(pk__lt=row.pk).count() % per_intent  # type: ignore[union-attr]
        return f"{_FIRST} + g * {per_intent} + {nth}"
    to = field.related_model if isinstance(field, models.ForeignKey) else None
    if to in (LedgerEntry, Review, Evidence) and getattr(row, field.attname) is not None:
        target = getattr(row, field.name)
        nth = target._meta.concrete_model._default_manager.filter(pk__lt=target.pk).count() % per_intent
        return f"{_FIRST} + g * {per_intent} + {nth}"
    return _text(row, field)


def _text(row: models.Model, field: Any) -> str | None:
    spread = {
        "subject": "'order-' || (g / 3)",
        "family": "'order-' || (g / 3)",
        "idempotency_key": "'key-' || g",
        "request_key": "'ask-' || g",
        "external_id": "'re_copy_' || g",
        "entry_id": "'re_copy_' || g",
        "key": "'key-' || g",
    }
    if field.column in spread and getattr(row, field.attname):
        return spread[field.column]
    if field.column in ("created_at", "settled_at", "status_since", "opened_at", "closed_at", "booked_at"):
        return _time() if getattr(row, field.attname) is not None else None
    return None


def _is_uuid(field: Any) -> bool:
    target = field.target_field if isinstance(field, models.ForeignKey) else field
    return isinstance(target, models.UUIDField)


def _uuid(number: str) -> str:
    """Ids in order of time, older than any made now."""
    if connection.vendor == "sqlite":
        return f"'01800000' || printf('%%024x', {number})"
    return f"('01800000' || lpad(to_hex({number}), 24, '0'))::uuid"


def _time() -> str:
    """One every four minutes, back from yesterday."""
    if connection.vendor == "sqlite":
        return "strftime('%%Y-%%m-%%d %%H:%%M:%%S', 'now', '-1 day', '-' || (g * 4) || ' minutes')"
    return "now() - interval '1 day' - g * interval '4 minutes'"


def _numbers(number: int) -> str:
    if connection.vendor == "sqlite":
        return f"(WITH RECURSIVE s(g) AS (SELECT 1 UNION ALL SELECT g + 1 FROM s WHERE g < {number}) SELECT g FROM s)"
    return f"generate_series(1, {number}) AS s(g)"
