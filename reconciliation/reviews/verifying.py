"""Whether what is stored is what was written: the chain of an intent, or of a case about an entry, and its files.

Of one for its page, or of all in a stream: the tables are read side by side in the order of their owners, each once,
so that memory stays the same however long the books are. Read inside `snapshot.one_moment`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar
from uuid import UUID

from django.db import transaction
from django.db.models import Model, QuerySet

from actions import chains, history
from actions.canonical import digest
from actions.chains import Story
from actions.locking import for_change
from actions.merging import side_by_side
from actions.models import Chained, Evidence, EvidenceKind, Intent, PolicySnapshot
from reconciliation.models import Attachment, Purpose, Review
from reconciliation.reviews import attaching

M = TypeVar("M", bound=Model)

# So many rows come from the database at a time, and so many cases are looked at together.
_CHUNK, _CASES = 2_000, 200


@dataclass(frozen=True)
class Anchored:
    """One owner's chain as an anchor has it."""

    owner: UUID | int
    length: int
    head: str


@dataclass(frozen=True)
class Verified:
    """What is wrong with one owner's history, and how many rows of history that was."""

    name: str
    faults: list[str]
    rows: int = 0


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
    story = history.story_of(intent)
    return [*chains.intent_faults(story), *_files(attaching.files_of(intent=intent), story)]


def _of_case(review: Review) -> list[str]:
    story = history.story_of_case(review)
    return [*chains.case_faults(story), *_files(attaching.files_of(review=review), story)]


def _held_still(row: M, faults: Callable[[M], list[str]]) -> list[str]:
    """Whoever adds to a history locks its owner first."""
    with transaction.atomic():
        return faults(for_change(type(row)).get(pk=row.pk))


def _files(files: Iterable[attaching.Looked], story: Story) -> list[str]:
    return chains.all_of(attaching.files_faults(files, story.rows, story.evidence))


def everything() -> Iterator[tuple[str, list[str]]]:
    """Every intent, and every case about an entry, by name, with what is wrong with it. As long as the books are."""
    return ((one.name, one.faults) for one in stream())


def stream(intents: Iterable[Anchored] = (), cases: Iterable[Anchored] = ()) -> Iterator[Verified]:
    """Every intent, then every case about an entry, then what belongs to neither. `intents`, `cases`: what an anchor
    says of them, each in the order of their ids."""
    yield from _intents(intents)
    yield from _cases(cases)
    yield from _texts_of_nobody()


def count() -> int:
    """How many rows of history there are."""
    return sum(model._default_manager.count() for model in history.chained_models())


def _intents(anchored: Iterable[Anchored]) -> Iterator[Verified]:
    # Policies are few, and shared.
    policies = lru_cache(maxsize=256)(_policy_text)
    owner = attrgetter("intent_id")
    for pk, (intents, told, evidence, files, *tables) in side_by_side(
        (_rows(Intent.objects.order_by("pk")), attrgetter("pk")),
        (anchored, attrgetter("owner")),
        (_rows(Evidence.objects.filter(intent__isnull=False).order_by("intent_id", "pk")), owner),
        (
            _looked_at(Attachment.objects.filter(intent__isnull=False).order_by("intent_id", "pk")),
            attrgetter("owner"),
        ),
        *((_rows(found), owner) for found in _tables("intent", intent__isnull=False)),
    ):
        rows = _by_position(tables)
        name = f"intent {pk}"
        if not intents:
            yield _without_owner(name, "intent", told, rows, others=len(evidence) + len(files))
            continue
        story = Story(intents[0], rows, {found.pk: found for found in evidence}, policies(intents[0].policy_id))
        faults = chains.intent_faults(story) + _files(files, story) + _against(told, story)
        yield Verified(name, faults, len(rows))


def _policy_text(pk: str) -> str | None:
    return PolicySnapshot.objects.filter(pk=pk).values_list("text", flat=True).first()


def _cases(anchored: Iterable[Anchored]) -> Iterator[Verified]:
    owner = attrgetter("review_id")
    found = side_by_side(
        (_rows(Review.objects.filter(purpose=Purpose.ENTRY).order_by("pk")), attrgetter("pk")),
        (anchored, attrgetter("owner")),
        (_looked_at(Attachment.objects.filter(intent__isnull=True).order_by("review_id", "pk")), attrgetter("owner")),
        *((_rows(rows), owner) for rows in _tables("review", intent__isnull=True)),
    )
    while some := [(pk, parts[:3], _by_position(parts[3:])) for pk, parts in islice(found, _CASES)]:
        # The texts of a case belong to no intent: they are fetched by the rows that name them.
        texts = Evidence.objects.in_bulk(history.named_in(row for _, _, rows in some for row in rows))
        for pk, (reviews, told, files), rows in some:
            name = f"case {pk}"
            if not reviews:
                yield _without_owner(name, "case about an entry", told, rows, others=len(files))
                continue
            story = history.case_story(reviews[0], rows, texts)
            faults = chains.case_faults(story) + _files(files, story) + _against(told, story)
            yield Verified(name, faults, len(rows))


def _against(told: Sequence[Anchored], story: Story) -> list[str]:
    return [fault for one in told for fault in chains.anchored_faults(story, length=one.length, head=one.head)]


def _without_owner(
    name: str, what: str, told: Sequence[Anchored], rows: Sequence[Chained], *, others: int
) -> Verified:
    """Rows whose owner is gone, or an owner that an anchor knows and that is gone with everything."""
    faults = [f"{chains.name_of(row)}: there is no such {what}" for row in rows]
    if others and not rows:
        faults.append(f"{others} pieces of evidence or files: there is no such {what}")
    faults += [f"it was anchored with {one.length} rows, and it is gone" for one in told]
    return Verified(name, faults, len(rows))


def _texts_of_nobody() -> Iterator[Verified]:
    """Pages of the books and webhooks of no one intent. No row of history rests on them, so nothing but their own
    digest speaks for them. (What people wrote in a case was looked at with the case.)"""
    raw = Evidence.objects.filter(intent__isnull=True, kind__in=[EvidenceKind.PAGE, EvidenceKind.WEBHOOK])
    for found in _rows(raw.order_by("pk")):
        if found.erased_at is None and digest(found.text, salt=found.salt) != found.digest:
            yield Verified(f"evidence {found.pk}", ["its text was changed"])


def _by_position(tables: Iterable[Sequence[Chained]]) -> list[Chained]:
    return sorted((row for rows in tables for row in rows), key=attrgetter("position"))


def _tables(owner: str, **which: bool) -> Iterator[QuerySet[Any]]:
    """Each table of history that names such an owner, in its order. SQLite and PostgreSQL follow the unique index on
    owner and position."""
    for model in history.chained_models():
        names = history.names_of(model)
        if {owner, *(name.partition("__")[0] for name in which)} <= names:
            yield model._default_manager.filter(**which).order_by(f"{owner}_id", "position")


def _rows(found: QuerySet[Any]) -> Iterator[Any]:
    return found.iterator(chunk_size=_CHUNK)


def _looked_at(found: QuerySet[Attachment]) -> Iterator[attaching.Looked]:
    """One at a time: the bytes are many."""
    look: Callable[[Attachment], attaching.Looked] = attaching.look_at
    return map(look, found.iterator(chunk_size=1))
