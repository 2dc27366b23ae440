"""What a person may do here. Permissions, not names of groups."""

from django.contrib.auth.models import User

from actions.errors import PersonNotAllowed

DECIDE, SUPERVISE, AUDIT = (
    "reconciliation.decide_review",
    "reconciliation.supervise_review",
    "reconciliation.audit",
)
OVERRIDE = "actions.override_intent"


def may_read(person: User) -> bool:
    return any(person.has_perm(name) for name in (DECIDE, SUPERVISE, AUDIT))


def may_decide(person: User) -> bool:
    return person.has_perm(DECIDE) or person.has_perm(SUPERVISE)


def may_supervise(person: User) -> bool:
    return person.has_perm(SUPERVISE)


def must(allowed: bool) -> None:
    if not allowed:
        raise PersonNotAllowed()
