"""What there is to erase of a subject, and what speaks against it."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from django.db.models import Q, QuerySet

from actions import stops, subjects
from actions.errors import Invalid, NotFound
from actions.models import Attempt, Evidence, EvidenceKind, Intent, Stop, StopScope
from reconciliation.models import Difference, LedgerEntry, Purpose, Review


@dataclass(frozen=True)
class Found:
    """`intents`, `cases` (about entries that no intent explains): by id, oldest first. `left`: subjects of the same
    family that are not asked for. `shared`: evidence of no one intent that names it, and `elsewhere`: evidence of
    other subjects' intents that does, which stays. `stops`: those in force about its people or itself, which stay.
    `against`: why nothing can be erased yet."""

    subject: str
    intents: tuple[UUID, ...]
    cases: tuple[int, ...]
    left: tuple[str, ...]
    shared: tuple[int, ...]
    elsewhere: tuple[int, ...]
    stops: tuple[int, ...]
    against: tuple[str, ...]


def find(subject: str, *, family: bool = False) -> Found:
    """Looks up `subject` as intents bear it, itself alone, or with `family` everything of its family.

    Raises Invalid (no subject), NotFound.
    """
    try:
        name = subjects.canonical_subject(subject)
    except subjects.BadSubject as bad:
        raise Invalid.field("subject", str(bad)) from None
    within = subjects.family_of(name)
    intents = list(Intent.objects.filter(family=within).order_by("pk"))
    entries = list(LedgerEntry.objects.filter(Q(subject=within) | Q(subject__startswith=f"{within}/")))
    mine = [one for one in intents if family or one.subject == name]
    booked = [one for one in entries if family or one.subject == name]
    if not mine and not booked:
        raise NotFound(f"No intent and no ledger entry has the subject {name!r}.")
    ids, cases = [one.pk for one in mine], list(_cases(booked))
    asked = {name} | {one.subject for one in mine} | {one.subject for one in booked}
    there = {one.subject for one in intents} | {one.subject for one in entries}
    shared, elsewhere = _in_other_texts(mine, asked)
    return Found(
        subject=name,
        intents=tuple(ids),
        cases=tuple(case.pk for case in cases),
        left=tuple(sorted(there - asked)),
        shared=tuple(shared),
        elsewhere=tuple(elsewhere),
        stops=tuple(about_people(mine, lifted=False).values_list("pk", flat=True)),
        against=(*_against(mine), *_against_cases(cases)),
    )


def _cases(entries: Iterable[LedgerEntry]) -> QuerySet[Review]:
    return Review.objects.filter(purpose=Purpose.ENTRY, intent=None, entry__in=list(entries)).order_by("pk")


def _against(intents: Iterable[Intent]) -> Iterator[str]:
    return (f"intent {one.pk}: {why}" for one in intents for why in objections(one))


def objections(intent: Intent) -> Iterator[str]:
    """Why what it says is still needed: nothing can be sent again, checked or decided without."""
    if not intent.settled:
        yield f"it is {intent.status}, not settled"
    if intent.disputed:
        yield "new facts contradict how it was settled"
    if intent.next_check_at is not None:
        yield f"the books are looked into once more, from {intent.next_check_at:%Y-%m-%d %H:%M} UTC on"
    if Attempt.objects.filter(intent=intent, closed_at=None).exists():
        yield "an attempt is still open"
    for pk in Review.objects.filter(intent=intent, closed_at=None).values_list("pk", flat=True):
        yield f"case {pk} is open"
    if Difference.objects.filter(intent=intent, resolved_at=None).exists():
        yield "money is still to be brought back, or to be sent"


def _against_cases(cases: Iterable[Review]) -> Iterator[str]:
    return (f"case {one.pk} is open" for one in cases if one.closed_at is None)


def about_people(intents: Iterable[Intent], *, lifted: bool) -> QuerySet[Stop]:
    """Stops that name their payees, customers or subjects."""
    people = {stops.fold(name) for one in intents for name in (one.payee, one.customer)} - {""}
    things = {stops.fold(one.subject) for one in intents}
    named = Q(scope__in=[StopScope.PAYEE, StopScope.CUSTOMER], key__in=people) | Q(
        scope=StopScope.SUBJECT, key__in=things
    )
    return Stop.objects.filter(named, lifted_at__isnull=not lifted, erased_at=None).order_by("pk")


# --- texts that name it and are not its own

_PART: Final = r"[\w/-]"


def _in_other_texts(intents: Iterable[Intent], named: set[str]) -> tuple[list[int], list[int]]:
    """Evidence that names a subject, or a key or id of its intents: of no one intent, and of others'. Reads through
    all texts that are left, once."""
    mine = list(intents)
    words = named | {one.idempotency_key for one in mine} | {one.external_id for one in mine}
    words -= {""}
    asked = Q(pk__in=())
    for word in words:
        asked |= Q(text__contains=word)
    whole = re.compile(rf"(?<!{_PART})(?:{'|'.join(map(re.escape, sorted(words)))})(?!{_PART})")
    own = {one.pk for one in mine}
    shared: list[int] = []
    elsewhere: list[int] = []
    found = Evidence.objects.filter(asked, erased_at=None).exclude(intent__in=own).order_by("pk")
    # What people wrote in a case about an entry goes with its case.
    raw = Q(intent__isnull=False) | Q(kind__in=[EvidenceKind.PAGE, EvidenceKind.WEBHOOK])
    for pk, intent_id, text in found.filter(raw).values_list("pk", "intent_id", "text").iterator(100):
        if whole.search(text):
            (shared if intent_id is None else elsewhere).append(pk)
    return shared, elsewhere
