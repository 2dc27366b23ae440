"""Subjects: their canonical form, their families, and the guard that lets one through at a time."""

import re
from uuid import UUID

from django.db import connection
from django.db.models import Q, QuerySet

from actions import spelling
from actions.models import Intent
from actions.statuses import UNSETTLED, Status

MAX = spelling.MAX


class BadSubject(ValueError):
    """The subject can't be taken; the message says why."""


def canonical_subject(text: str, *, folds: bool = False, pattern: str = "") -> str:
    """One spelling for one thing: NFC, trimmed, folded where the kind says so, parts split by single slashes.

    Raises BadSubject for an empty part, control or invisible characters, more than 200 characters, or when it
    doesn't fit `pattern`.
    """
    found = "/".join(part.strip() for part in spelling.tidy(text).split("/"))
    if folds:
        found = spelling.tidy(found.casefold())
    if not found or any(not part for part in found.split("/")):
        raise BadSubject("The subject, or a part of it, is empty.")
    if wrong := spelling.fault(found):
        raise BadSubject(f"The subject {wrong}.")
    if pattern and not re.fullmatch(pattern, found):
        raise BadSubject("The subject doesn't have the form that this kind asks for.")
    return found


def family_of(subject: str) -> str:
    """`order-4812/line-2` → `order-4812`."""
    return subject.split("/", 1)[0]


def guard_key(kind_id: int, subject: str) -> str:
    return f"{kind_id}:{subject}"


def lock_family(kind_id: int, family: str) -> None:
    """Lets one transaction at a time look at a family and add to it.

    An advisory lock on PostgreSQL, until the transaction ends. On SQLite the immediate transaction is the lock.
    """
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [kind_id, family])


def lock_family_of(intent_id: UUID) -> None:
    """The same, for the family of an intent. Before its row, always: whoever claims holds the family first."""
    if connection.vendor == "postgresql":
        lock_family(*Intent.objects.values_list("kind_id", "family").get(pk=intent_id))


def related(one: str, other: str) -> bool:
    """Whether two subjects are the same, or one is part of the other. Two parts of one thing are not related."""
    return one == other or one.startswith(f"{other}/") or other.startswith(f"{one}/")


def being_corrected(kind_id: int, subject: str) -> bool:
    """Whether somebody has proposed that an intent of the subject's family, which counts as failed, was done after
    all, by an entry that settled another one; and nobody has agreed or refused yet. Hold `lock_family` while acting
    on the answer."""
    # Read through the reverse relation: what people decide is another app's.
    proposed = {"named_by__choice": "correct", "named_by__about": None, "named_by__followed_by": None}
    named = Intent.objects.filter(kind_id=kind_id, family=family_of(subject), status=Status.FAILED, **proposed)
    return any(related(found, subject) for found in named.values_list("subject", flat=True))


def blocking(kind_id: int, subject: str, *, besides: UUID | None = None) -> list[Intent]:
    """The intents of the subject's family that keep another one from being sent, oldest first.

    Those that hold the guard or may be sent without it (the waiver was for them, not for whatever comes next), those
    that may have been sent, guard or not, and disputed ones. Hold `lock_family` while acting on the answer.
    """
    ids = _related(_open(kind_id, subject), subject, besides)
    if not ids:
        return []  # nearly always; whole rows of five tables cost far more to ask for, even if there is none
    found = _open(kind_id, subject).filter(pk__in=ids)
    return list(found.select_related("agent", "kind", "policy", "downstream").order_by("created_at", "id"))


def any_disputed(kind_id: int, subject: str, *, besides: UUID) -> bool:
    """Whether one of those that `blocking` returns is in question."""
    return bool(_related(_open(kind_id, subject).filter(disputed=True), subject, besides))


def _open(kind_id: int, subject: str) -> QuerySet[Intent]:
    guards = Q(guard_key__isnull=False) | Q(guard_waived=True)
    maybe_sent = Q(status__in=[Status.SUBMITTED, Status.UNKNOWN])
    open_ = (Q(status__in=sorted(UNSETTLED)) & guards) | maybe_sent | Q(disputed=True)
    return Intent.objects.filter(open_, kind_id=kind_id, family=family_of(subject))


def _related(family: QuerySet[Intent], subject: str, besides: UUID | None) -> list[UUID]:
    # Compared here, because LIKE folds case on SQLite.
    found = family.values_list("pk", "subject")
    return [pk for pk, theirs in found if pk != besides and related(theirs, subject)]
