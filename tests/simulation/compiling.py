"""Django's compiler of statements, which remembers what it wrote for the columns of a whole row.

Writing the same fifty columns of an intent again and again took a third of a run. What is remembered is only the list
of columns (with the joins that `select_related` adds), and only for queries that ask for all of them; conditions,
orders and values are compiled anew. A test compares runs with and without it.

The names of the classes are those by which a database's operations look for them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from django.db.models.sql import compiler
from django.db.models.sql.compiler import (
    SQLAggregateCompiler,
    SQLDeleteCompiler,
    SQLInsertCompiler,
    SQLUpdateCompiler,
)
from django.db.models.sql.query import Query

__all__ = ["SQLAggregateCompiler", "SQLCompiler", "SQLDeleteCompiler", "SQLInsertCompiler", "SQLUpdateCompiler"]

_ALL_COLUMNS = (frozenset(), True)
_kept: dict[Any, Kept] = {}


@dataclass(frozen=True)
class Kept:
    """What `get_select` returned, and what it added to the query: joins, and how often each is used."""

    found: tuple[Any, Any, Any]
    joins: dict[str, Any]
    used: dict[str, int]

    @cached_property
    def fields(self) -> list[Any]:
        return [column for column, _, _ in self.found[0]]


class SQLCompiler(compiler.SQLCompiler):
    _row: Kept | None = None
    _converters: dict[int, Any]

    def get_select(self, with_col_aliases: bool = False) -> Any:
        query = self.query
        if with_col_aliases or not _asks_for_all(query):
            return super().get_select(with_col_aliases)
        shape = _shape(query)
        if shape in _kept:
            self._row = _kept[shape]
            _add_joins(query, self._row)
        else:
            self._row = _kept[shape] = self._written()
        rows, model, _ = self._row.found
        return list(rows), model, {}

    def get_order_by(self) -> Any:
        """An order by names needs no list of what is selected, which is long: nothing there has a name of its own."""
        if self._row is None or not all(isinstance(name, str) for name in _order(self.query)):
            return super().get_order_by()
        select, self.select = self.select, None
        try:
            return super().get_order_by()
        finally:
            self.select = select

    def _written(self) -> Kept:
        joins, used = dict(self.query.alias_map), dict(self.query.alias_refcount)
        found = super().get_select()
        return Kept(
            found,
            {alias: join for alias, join in self.query.alias_map.items() if alias not in joins},
            {alias: n - used.get(alias, 0) for alias, n in self.query.alias_refcount.items()},
        )

    def get_converters(self, expressions: Any) -> Any:
        row = self._row
        if row is None or expressions != row.fields:
            return super().get_converters(expressions)
        if "converters" not in row.__dict__:
            row.__dict__["converters"] = super().get_converters(expressions)
        return row.__dict__["converters"]


def _asks_for_all(query: Query) -> bool:
    return (
        query.default_cols
        and query.selected is None
        and not query.annotations
        and not query.extra
        and not query.extra_order_by
        and not query.combinator
        and query.deferred_loading == _ALL_COLUMNS
        and not query._filtered_relations
        and query.select_related is not True
    )


def _order(query: Query) -> Any:
    return query.order_by or (query.get_meta().ordering if query.default_ordering else ())


def _shape(query: Query) -> Any:
    """Everything that the list of columns depends on."""
    return (
        query.model,
        _frozen(query.select_related),
        tuple(
            (alias, join.table_name, join.parent_alias, join.join_type, getattr(join, "join_field", None))
            for alias, join in query.alias_map.items()
        ),
        tuple((table, tuple(aliases)) for table, aliases in query.table_map.items()),
        query.alias_prefix,
    )


def _frozen(related: Any) -> Any:
    return tuple((name, _frozen(more)) for name, more in related.items()) if related else ()


def _add_joins(query: Query, row: Kept) -> None:
    for alias, join in row.joins.items():
        query.alias_map[alias] = join
        query.table_map.setdefault(join.table_name, []).append(alias)
    for alias, more in row.used.items():
        query.alias_refcount[alias] = query.alias_refcount.get(alias, 0) + more
