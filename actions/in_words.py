"""Conditions as they stand in an index, word for word.

SQLite uses a partial index only when its condition is part of the query, and a parameter is none: it would go through
every intent that ever was, once a second. PostgreSQL sees through both.
"""

from collections.abc import Iterable
from typing import Final

from django.db.models import BooleanField, F, Func

from actions.statuses import COUNTED, UNSETTLED, Status


def status_in(*statuses: Status) -> Func:
    """That the status is one of these, to be filtered by. As the indexes list them: in the order of their names."""
    names = ", ".join(f"'{status.value}'" for status in sorted(statuses))
    return Func(F("status"), template=f"%(expressions)s IN ({names})", output_field=BooleanField())


def unsettled() -> Func:
    """The condition of the indexes over what is open."""
    return status_in(*UNSETTLED)


def _among(statuses: Iterable[Status]) -> str:
    return f"status IN ({', '.join(repr(status.value) for status in sorted(statuses))})"


# The same, and the condition of the index of what uses up limits, for queries that are written out. What is disputed
# may have happened, whatever it is settled as.
UNSETTLED_SQL: Final = _among(UNSETTLED)
COUNTED_SQL: Final = f"({_among(COUNTED)} OR disputed)"
