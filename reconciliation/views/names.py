"""The names behind `person:3`."""

from collections.abc import Iterable

from django.contrib.auth.models import User

from reconciliation.templatetags.desk import person as name_of


def names_of(actor_ids: Iterable[str]) -> dict[str, str]:
    """`person:3` → the name; one query, or none."""
    numbers = {number for by in actor_ids if by and (number := by.removeprefix("person:")).isdigit()}
    return {f"person:{pk}": name_of(user) for pk, user in User.objects.in_bulk(numbers).items()} if numbers else {}
