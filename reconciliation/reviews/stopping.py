"""People place stops and lift them."""

from django.contrib.auth.models import User

from actions import stops
from actions.models import Kind, Stop
from reconciliation.reviews import people


def place(*, person: User, scope: str, value: str, kind: Kind | None, reason: str) -> Stop:
    """Stops it and holds what is recorded; the same stop again is the one there is. Outside any transaction.

    Raises PersonNotAllowed, and Invalid for `scope`, `value` or `reason`.
    """
    people.must(people.may_place_stop(person))
    return stops.place(scope, value, kind=kind, reason=reason, actor_id=f"person:{person.pk}")


def lift(stop_id: int, *, person: User) -> Stop:
    """Ends a stop; lifted already, it stays as it is. Raises PersonNotAllowed, NotFound."""
    people.must(people.may_lift_stop(person))
    return stops.lift(stop_id, actor_id=f"person:{person.pk}")
