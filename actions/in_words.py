"""Conditions as they stand in an index, word for word.

SQLite uses a partial index only when its condition is part of the query, and a parameter is none: it would go through
every intent that ever was, once a second. PostgreSQL sees through both.
"""

from django.db.models import BooleanField, F, Func

from actions.statuses import COUNTED, UNSETTLED, Status


def status_in(*statuses: Status) -> Func:
    """That the status is one of these, to be filtered by. As the indexes list them: in the order of their names."""
    names = ", ".join(f"'{status.value}'" for status in sorted(statuses))
    return Func(F("status"), template=f"%(expressions)s IN ({names})", output_field=BooleanField())


def unsettled() -> Func:
    """The condition of the indexes over what is open."""
    return status_in(*UNSETTLED)


def counts_as_used() -> Func:
    """The condition of the index of what uses up limits: whatever may still happen, may have happened, or did.

    What is disputed may have happened, whatever it is settled as.
    """
    names = ", ".join(f"'{status.value}'" for status in sorted(COUNTED))
    return Func(
        F("status"),
        F("disputed"),
        template="(%(expressions)s)",
        arg_joiner=f" IN ({names}) OR ",
        output_field=BooleanField(),
    )
