"""How a person likes the desk."""

from typing import Any

from django.contrib.auth.models import User

from reconciliation.models import Preferences


def of(person: User) -> Preferences:
    """What they chose; the defaults, not stored, when they chose nothing."""
    return Preferences.objects.filter(person=person).first() or Preferences(person=person)


def keep(*, person: User, **chosen: Any) -> Preferences:
    """Stores what they chose, their own only. Raises IntegrityError for a value on none of the lists."""
    kept, _ = Preferences.objects.update_or_create(person=person, defaults=chosen)
    return kept
