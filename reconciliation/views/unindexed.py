"""A column whose index is none to start from: SQLite, which knows no figures, takes any index that it sees an
equality for, and would go through all that ever was. What is open has indexes of its own."""

from typing import Any

from django.db.models import F, Func
from django.db.models.lookups import Exact, IsNull


class Unindexed(Func):
    """`+column` on SQLite, as its documentation says ("unary + disqualifies terms"); itself elsewhere."""

    arity = 1
    template = "%(expressions)s"

    def as_sqlite(self, compiler: Any, connection: Any, **extra: Any) -> Any:
        return self.as_sql(compiler, connection, template="+%(expressions)s", **extra)


def is_null(column: str) -> IsNull:
    return IsNull(Unindexed(F(column)), True)


def equals(column: str, value: int) -> "Exact[Any]":
    return Exact(Unindexed(F(column)), value)
