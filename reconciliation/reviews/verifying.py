"""Whether what is stored is what was written: the chain of an intent, or of a case about an entry, and its files."""

from collections.abc import Iterator

from actions import history
from actions.models import Intent
from reconciliation.models import Purpose, Review
from reconciliation.reviews import attaching


def intent_faults(intent: Intent) -> list[str]:
    """What is wrong with an intent, its history and the files of its cases; empty when everything fits together."""
    return [*history.faults(intent), *attaching.faults(intent=intent)]


def case_faults(review: Review) -> list[str]:
    """The same for a case about an entry that no intent explains."""
    return [*history.case_faults(review), *attaching.faults(review=review)]


def everything() -> Iterator[tuple[str, list[str]]]:
    """Every intent, and every case about an entry, by name, with what is wrong with it. As long as the books are."""
    # Prefetched and not joined: a policy that is gone must not hide its intents.
    for intent in Intent.objects.prefetch_related("policy").order_by("pk").iterator(chunk_size=100):
        yield f"intent {intent.pk}", intent_faults(intent)
    for review in Review.objects.filter(purpose=Purpose.ENTRY).order_by("pk").iterator(chunk_size=100):
        yield f"case {review.pk}", case_faults(review)
