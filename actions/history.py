"""The chain of digests over everything that is ever written about an intent.

Each link's digest is SHA-256 over the canonical JSON of `{"previous": …, "row": …}`; which fields of a row count
is listed by the row's class (`CHAINED`) and in docs/history.md. The chain hangs on the intent's own unchanging
fields, so that exchanging the intent under its history shows as well.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, ClassVar, Final, Protocol, TypeVar
from uuid import UUID

from django.apps import apps
from django.db import models

from actions import payloads, policy
from actions.canonical import canonical, digest
from actions.locking import for_change
from actions.models import Chained, Evidence, Intent, Observation, Observed, PolicySnapshot, Transition
from actions.models.history import evidence_refs, plain

R = TypeVar("R", bound=Chained)


class Owner(Protocol):
    """A row that a chain belongs to: an intent, or the case of an entry that no intent explains."""

    # The fields that the first link rests on: set when it is stored, never changed.
    GENESIS: ClassVar[tuple[str, ...]]


def genesis(owner: Owner) -> str:
    """The digest that an owner's chain begins with, over the fields that its class lists in `GENESIS`."""
    return digest(canonical({name: plain(getattr(owner, name)) for name in owner.GENESIS}))


def facts_of(intent: Intent) -> str:
    """What a transition pins down of the intent, as canonical JSON."""
    return canonical({name: plain(getattr(intent, name)) for name in Transition.FACTS})


def link_digest(row: Chained) -> str:
    return digest(canonical({"previous": row.previous, "row": row.chained()}))


def link(row: Chained, *, length: int, head: str, at: datetime) -> None:
    """Gives `row` its place behind `head`. The caller holds the owner's lock and stores the owner's new head."""
    row.position, row.previous, row.at = length + 1, head, at
    row.digest = link_digest(row)


def append(row: R, *, owner: type[models.Model], pk: Any, at: datetime) -> R:
    """Locks the owner's row, links `row` to its chain and saves both. Call it inside a transaction."""
    locked: Any = for_change(owner).get(pk=pk)
    link(row, length=locked.chain_length, head=locked.chain_head or genesis(locked), at=at)
    row.save(force_insert=True)
    owner._default_manager.filter(pk=pk).update(chain_length=row.position, chain_head=row.digest)
    return row


def observe(
    intent_id: UUID, what: Observed, *, by: str, evidence: Iterable[Evidence] = (), at: datetime
) -> Observation:
    """Writes down what changed no status. Call it inside a transaction."""
    row = Observation(intent_id=intent_id, what=what, by=by, evidence=refs(evidence))
    return append(row, owner=Intent, pk=intent_id, at=at)


def refs(evidence: Iterable[Evidence]) -> str:
    """How history rows name evidence: canonical `[[id, digest], …]`."""
    return canonical([[found.pk, found.digest] for found in evidence])


def rows_of(intent_id: Any) -> list[Chained]:
    """Every history row of one intent, of whatever table, in the chain's order."""
    found: list[Chained] = []
    for model in chained_models():
        if any(field.name == "intent" for field in model._meta.get_fields()):
            found += model._default_manager.filter(**{"intent_id": intent_id})
    return sorted(found, key=lambda row: row.position)


def chained_models() -> Sequence[type[Chained]]:
    return [model for model in apps.get_models() if issubclass(model, Chained)]


def faults(intent: Intent) -> list[str]:
    """What is wrong with an intent and its history; empty when everything fits together."""
    rows = rows_of(intent.pk)
    return _all_of(_broken_links(intent, rows), _does_not_fit(intent, rows), _changed_evidence(intent, rows))


def _all_of(*looks: Iterator[str]) -> list[str]:
    """What each look finds. What somebody wrote over a column may be nothing that can be read: then it was changed,
    and that is what the look found."""
    found: list[str] = []
    for look in looks:
        try:
            found.extend(look)
        except _UNREADABLE as wrong:
            found.append(f"something that it rests on can't be read any more: {type(wrong).__name__}")
    return found


# Of JSON that is none, and of JSON that holds something else than what was written.
_UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError)


def case_faults(review: models.Model) -> list[str]:
    """The same for a case about an entry that no intent explains: its decisions and comments are a chain of its own.

    Its rows are those that name the case and no intent.
    """
    rows: list[Chained] = []
    for model in chained_models():
        if {"review", "intent"} <= {field.name for field in model._meta.get_fields()}:
            rows += model._default_manager.filter(**{"review_id": review.pk, "intent_id": None})
    rows.sort(key=lambda row: row.position)
    named: set[int] = set()
    for row in rows:
        with suppress(*_UNREADABLE):  # told below
            named |= {pk for pk, _ in _refs_of(row)}
    stored = {found.pk: found for found in Evidence.objects.filter(pk__in=named)}
    return _all_of(_broken_links(review, rows), _changed_texts(stored.values()), _changed_refs(rows, stored))


def _broken_links(owner: Any, rows: list[Chained]) -> Iterator[str]:
    head, length = genesis(owner), 0
    for row in rows:
        name = f"{row._meta.db_table} {row.pk}"
        if row.position != length + 1:
            yield f"{name}: position {row.position}, expected {length + 1}"
        if row.previous != head:
            yield f"{name}: does not follow the row before it"
        if link_digest(row) != row.digest:
            yield f"{name}: a field was changed"
        head, length = row.digest, row.position
    # Before its first row a case has no head; an intent is never without one.
    said = (owner.chain_length, owner.chain_head or (head if not length else ""))
    if (length, head) != said:
        yield f"the chain ends at {length}, the {owner._meta.verbose_name} says {owner.chain_length}"


def payload_fits(intent: Intent) -> bool:
    """Whether the intent still asks for what its payload digest, and its chain, were made over."""
    fields = payloads.payload(
        kind=policy.read(intent.policy.text).kind,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        params=intent.params,
        executor=intent.executor,
    )
    if payloads.payload_digest(fields, salt=intent.payload_salt) != intent.payload_digest:
        return False
    # Whoever changes the payload can make the digest fit; the chain was begun over the digest of then.
    begun = Transition.objects.filter(intent_id=intent.pk, position=1).values_list("previous", flat=True).first()
    return begun == genesis(intent)


def _does_not_fit(intent: Intent, rows: list[Chained]) -> Iterator[str]:
    """The intent's own columns against what the chain says of them."""
    if not PolicySnapshot.objects.filter(pk=intent.policy_id).exists():
        yield "its policy snapshot is gone"
        return
    if not payload_fits(intent):
        yield "the payload does not fit its digest"
    last = max((row for row in rows if isinstance(row, Transition)), key=lambda row: row.sequence, default=None)
    if last is None or (last.to_status, last.sequence) != (intent.status, intent.version):
        yield "the status is not what the last transition says"
    elif intent.settled and last.facts != facts_of(intent):
        yield "what was settled is not what the last transition says"


def _changed_evidence(intent: Intent, rows: list[Chained]) -> Iterator[str]:
    stored = {found.pk: found for found in Evidence.objects.filter(intent=intent)}
    yield from _changed_texts(stored.values())
    yield from _changed_refs(rows, stored)


def _changed_texts(stored: Iterable[Evidence]) -> Iterator[str]:
    for found in stored:
        if found.erased_at is None and digest(found.text, salt=found.salt) != found.digest:
            yield f"evidence {found.pk}: its text was changed"
        if found.erased_at is not None and found.text:
            yield f"evidence {found.pk}: it is marked as erased and has a text"


def _refs_of(row: Chained) -> list[tuple[int, str]]:
    """The evidence that a row names, with its digest; a comment names its text."""
    digest_of_text = getattr(row, "text_digest", "")
    text = [(int(getattr(row, "text_id")), str(digest_of_text))] if digest_of_text else []  # noqa: B009  comments alone have it
    return [*evidence_refs(getattr(row, "evidence", "") or "[]"), *text]


def _changed_refs(rows: Iterable[Chained], stored: Mapping[int, Evidence]) -> Iterator[str]:
    for row in rows:
        for pk, told in _refs_of(row):
            if pk not in stored:
                yield f"evidence {pk}: {row._meta.db_table} {row.pk} rests on it and it is gone"
            elif stored[pk].digest != told:
                yield f"evidence {pk}: its digest is not the one that {row._meta.db_table} {row.pk} names"
