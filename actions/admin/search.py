"""Finds intents by what people have in hand: an order, a key, the downstream's id, our own id."""

from contextlib import suppress
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from actions.models import Intent
from actions.subjects import family_of


def find_intents(intents: QuerySet[Intent], term: str) -> QuerySet[Intent]:
    """Those that `term` names exactly (an order names its lines too); if none, those that begin with it.

    Each question is asked by itself, because each rides its own index and an OR of them rides none on SQLite.
    Beginnings are looked for only then: on PostgreSQL that reads the table, unless its collation is C.
    """
    for questions in (_exactly(term), _beginning(term)):
        hits = [question for question in questions if Intent.objects.filter(question).exists()]
        if hits:
            found = Q()
            for hit in hits:
                found |= hit
            return intents.filter(found)
    return intents.none()


def _exactly(term: str) -> list[Q]:
    found = [
        Q(idempotency_key=term),
        # In the index's own words, or SQLite doesn't see that its condition is met.
        ~Q(external_id="") & Q(external_id=term),
        Q(family=term) if "/" not in term else Q(family=family_of(term), subject=term),
    ]
    with suppress(ValueError):
        found.append(Q(pk=UUID(term)))
    return found


def _beginning(term: str) -> list[Q]:
    found = [_begins("idempotency_key", term), ~Q(external_id="") & _begins("external_id", term)]
    if "/" in term:
        found.append(Q(family=family_of(term)) & _begins("subject", term))
    else:
        found.append(_begins("family", term))
    if between := _ids_beginning(term):
        found.append(Q(pk__range=between))
    return found


def _begins(name: str, term: str) -> Q:
    found = Q(**{f"{name}__startswith": term})
    if connection.vendor == "sqlite":
        # LIKE folds case there, so it rides no index; a range of bytes does.
        found &= Q(**{f"{name}__gte": term, f"{name}__lt": f"{term}\U0010ffff"})
    return found


def _ids_beginning(term: str) -> tuple[UUID, UUID] | None:
    """The lowest and the highest UUID whose text begins with `term`; None when no UUID does."""
    digits = term.replace("-", "").lower()
    if not 4 <= len(digits) <= 32 or not set(digits) <= set("0123456789abcdef"):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
