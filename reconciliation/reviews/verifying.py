"""Whether what is stored is what was written: the chain of an intent, or of a case about an entry, and its files."""

from collections.abc import Callable, Iterator
from typing import TypeVar

from django.db import transaction
from django.db.models import Model, QuerySet

from actions import history
from actions.locking import for_change
from actions.models import Intent
from reconciliation.models import Purpose, Review
from reconciliation.reviews import attaching

M = TypeVar("M", bound=Model)


def intent_faults(intent: Intent) -> list[str]:
    """What is wrong with an intent, its history and the files of its cases; empty when everything fits together.

    What was written between reading the row and reading its history is no fault: whatever seems broken is looked at
    once more, while nobody can change it.
    """
    return _of_intent(intent) and _held_still(intent, _of_intent)


def case_faults(review: Review) -> list[str]:
    """The same for a case about an entry that no intent explains."""
    return _of_case(review) and _held_still(review, _of_case)


def _of_intent(intent: Intent) -> list[str]:
    return [*history.faults(intent), *attaching.faults(intent=intent)]


def _of_case(review: Review) -> list[str]:
    return [*history.case_faults(review), *attaching.faults(review=review)]


def _held_still(row: M, faults: Callable[[M], list[str]]) -> list[str]:
    """Whoever adds to a history locks its owner first."""
    with transaction.atomic():
        return faults(for_change(type(row)).get(pk=row.pk))


def everything() -> Iterator[tuple[str, list[str]]]:
    """Every intent, and every case about an entry, by name, with what is wrong with it. As long as the books are."""
    # Prefetched and not joined: a policy that is gone must not hide its intents.
    for intent in _by_hundreds(Intent.objects.prefetch_related("policy")):
        yield f"intent {intent.pk}", intent_faults(intent)
    for review in _by_hundreds(Review.objects.filter(purpose=Purpose.ENTRY)):
        yield f"case {review.pk}", case_faults(review)


def _by_hundreds(rows: QuerySet[M]) -> Iterator[M]:
    """Those that are there now, in the order of their ids. No query stays open in between: on SQLite nothing could be
    locked meanwhile once somebody else has written."""
    last = rows.order_by("-pk").values_list("pk", flat=True).first()
    found = list(rows.filter(pk__lte=last).order_by("pk")[:100]) if last is not None else []
    while found:
        yield from found
        found = list(rows.filter(pk__gt=found[-1].pk, pk__lte=last).order_by("pk")[:100])
