"""The roles at the desk, as groups: made by `migrate`, so that a fresh installation has them.

A group that is there already is left as it is: whoever changed its permissions meant it. Permissions count, not the
names of groups; nobody needs `is_staff` for the desk.
"""

from collections.abc import Mapping

from django.apps import apps
from django.contrib.auth.management import create_permissions
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.db.models import QuerySet

from reconciliation.reviews import people

_DECIDE = (people.DECIDE, people.PLACE_STOP)
_SUPERVISE = (people.SUPERVISE, people.LIFT_STOP)

ROLES: Mapping[str, tuple[str, ...]] = {
    "reviewer": _DECIDE,
    "supervisor": (*_DECIDE, *_SUPERVISE),
    "auditor": (people.AUDIT,),
    # Everything in these apps; with `is_staff`, which a superuser gives, the admin as well.
    "administrator": ("actions.*", "reconciliation.*", "auth.*"),
}
_APPS = ("actions", "reconciliation", "auth")


def ensure() -> list[str]:
    """Makes the groups that are missing, and says which. May be called at any time, any number of times."""
    if Group._meta.db_table not in connection.introspection.table_names():
        return []  # `migrate` of one app only: the last one brings them
    missing = [name for name in ROLES if not Group.objects.filter(name=name).exists()]
    for label in _APPS if missing else ():
        # Django makes these after `migrate` too, but in an order of its own.
        create_permissions(apps.get_app_config(label), verbosity=0)
    return [name for name in missing if _make(name)]


def _make(name: str) -> bool:
    group, made = Group.objects.get_or_create(name=name)
    if made:
        group.permissions.set(_permissions(ROLES[name]))
    return made


def _permissions(wanted: tuple[str, ...]) -> QuerySet[Permission]:
    pairs = [name.split(".", 1) for name in wanted]
    whole = [label for label, codename in pairs if codename == "*"]
    found = Permission.objects.filter(content_type__app_label__in=whole)
    for label, codename in pairs:
        found |= Permission.objects.filter(content_type__app_label=label, codename=codename)
    return found
