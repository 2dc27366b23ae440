"""What a person may do here. Permissions, not names of groups."""

from django.contrib.auth.models import User
from django.db.models import QuerySet

from actions.errors import PersonNotAllowed

DECIDE, SUPERVISE, AUDIT = (
    "reconciliation.decide_review",
    "reconciliation.supervise_review",
    "reconciliation.audit",
)
OVERRIDE = "actions.override_intent"
# The one that knows permissions; the other only tells who has to wait before they try again.
_BACKEND = "django.contrib.auth.backends.ModelBackend"
PLACE_STOP, LIFT_STOP = "actions.place_stop", "actions.lift_stop"


def may_read(person: User) -> bool:
    return any(person.has_perm(name) for name in (DECIDE, SUPERVISE, AUDIT))


def may_decide(person: User) -> bool:
    return person.has_perm(DECIDE) or person.has_perm(SUPERVISE)


def may_supervise(person: User) -> bool:
    return person.has_perm(SUPERVISE)


def deciders() -> QuerySet[User]:
    """Everybody who may decide cases, by name."""
    return (with_perm(DECIDE) | with_perm(SUPERVISE)).distinct().order_by("first_name", "last_name", "username")


def with_perm(name: str, *, include_superusers: bool = True) -> QuerySet[User]:
    """Whoever is active and may do that."""
    return User.objects.with_perm(name, backend=_BACKEND, include_superusers=include_superusers)


def may_place_stop(person: User) -> bool:
    """To stop something is safe: whoever decides cases may."""
    return person.has_perm(PLACE_STOP) or may_decide(person)


def may_lift_stop(person: User) -> bool:
    return person.has_perm(LIFT_STOP) or may_supervise(person)


def must(allowed: bool) -> None:
    if not allowed:
        raise PersonNotAllowed()
