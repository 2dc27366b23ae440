"""Whether what is stored about one owner is what was written: its chain, its own columns, its evidence.

Reads no table: everything is handed over in a `Story`. The pages load one, the verifier of everything
(`reconciliation.reviews.verifying`) streams them, and both ask the same questions.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, Final, Protocol

from actions import payloads, policy
from actions.canonical import canonical, canonical_row, digest
from actions.models import Chained, Evidence, Intent, Observation, Observed, Transition
from actions.models.history import evidence_refs, plain


class Owner(Protocol):
    """A row that a chain belongs to: an intent, or the case of an entry that no intent explains."""

    # The fields that the first link rests on: set when it is stored, never changed.
    GENESIS: ClassVar[tuple[str, ...]]


@dataclass(frozen=True)
class Story:
    """Everything that history holds about one owner: its rows by position, the evidence that is its own or that its
    rows name, by id, and (of an intent) the text of its policy, None when that is gone."""

    owner: Any
    rows: Sequence[Chained]
    evidence: Mapping[int, Evidence] = field(default_factory=dict)
    policy: str | None = None


def genesis(owner: Owner) -> str:
    """The digest that an owner's chain begins with, over the fields that its class lists in `GENESIS`."""
    return digest(canonical({name: plain(getattr(owner, name)) for name in owner.GENESIS}))


def link_digest(row: Chained) -> str:
    return digest(canonical_row({"previous": row.previous, "row": row.chained()}))


# Of JSON that is none, and of JSON that holds something else than what was written.
UNREADABLE: Final = (ValueError, TypeError, LookupError, AttributeError)


def all_of(*looks: Iterable[str]) -> list[str]:
    """What each look finds. What somebody wrote over a column may be nothing that can be read: then it was changed,
    and that is what the look found."""
    found: list[str] = []
    for look in looks:
        try:
            found.extend(look)
        except UNREADABLE as wrong:
            found.append(f"something that it rests on can't be read any more: {type(wrong).__name__}")
    return found


def intent_faults(story: Story) -> list[str]:
    """What is wrong with an intent and its history; empty when everything fits together."""
    return all_of(_broken_links(story), _does_not_fit(story), _changed_evidence(story))


def case_faults(story: Story) -> list[str]:
    """The same for a case about an entry that no intent explains."""
    return all_of(_broken_links(story), _changed_evidence(story))


def anchored_faults(story: Story, *, length: int, head: str) -> list[str]:
    """What contradicts an anchor that held the chain at `length` rows with the digest `head`. What came later is
    new."""
    if len(story.rows) < length:
        return [f"its chain was anchored with {length} rows and has {len(story.rows)}: its end was cut off"]
    if length and story.rows[length - 1].digest != head:
        row = story.rows[length - 1]
        return [f"{name_of(row)}: row {length} is not the one that was anchored: its history was written anew"]
    return []


def name_of(row: Chained) -> str:
    return f"{row._meta.db_table} {row.pk}"


def _broken_links(story: Story) -> Iterator[str]:
    owner = story.owner
    head, length = _begin(story), 0
    for row in story.rows:
        if row.position != length + 1:
            yield f"{name_of(row)}: position {row.position}, expected {length + 1}"
        if row.previous != head:
            yield f"{name_of(row)}: does not follow the row before it"
        if link_digest(row) != row.digest:
            yield f"{name_of(row)}: a field was changed"
        head, length = row.digest, row.position
    # Before its first row a case has no head; an intent is never without one.
    said = (owner.chain_length, owner.chain_head or (head if not length else ""))
    if (length, head) != said:
        yield f"the chain ends at {length}, the {owner._meta.verbose_name} says {owner.chain_length}"


def _begin(story: Story) -> str:
    """What the first row has to follow. With the salt of an erased intent nobody can reckon that any more: there the
    row of the erasing pins down what was kept (`_not_as_kept`)."""
    first = begun(story.rows) if getattr(story.owner, "erased_at", None) else None
    return first or genesis(story.owner)


def begun(rows: Sequence[Chained]) -> str | None:
    return rows[0].previous if rows and rows[0].position == 1 else None


# --- the intent's own columns against what the chain says of them


def _does_not_fit(story: Story) -> Iterator[str]:
    intent: Intent = story.owner
    if story.policy is None:
        yield "its policy snapshot is gone"
        return
    if intent.erased_at is not None:
        yield from _not_as_kept(story)
    else:
        if not payload_fits(intent, policy_text=story.policy, begun_with=begun(story.rows)):
            yield "the payload does not fit its digest"
        if next(erasings(story.rows), None) is not None:
            yield "its history says that it was erased, and it is not marked so"
    last = max((row for row in story.rows if isinstance(row, Transition)), key=lambda row: row.sequence, default=None)
    if last is None or (last.to_status, last.sequence) != (intent.status, intent.version):
        yield "the status is not what the last transition says"
    elif intent.settled and last.facts != facts_of(intent):
        yield "what was settled is not what the last transition says"


def facts_of(intent: Intent) -> str:
    """What a transition pins down of the intent, as canonical JSON."""
    return canonical({name: plain(getattr(intent, name)) for name in Transition.FACTS})


@lru_cache(maxsize=256)
def _kind_in(policy_text: str) -> str:
    return policy.read(policy_text).kind


def payload_fits(intent: Intent, *, policy_text: str, begun_with: str | None) -> bool:
    """Whether the intent still asks for what its payload digest, and its chain, were made over. `begun_with`: what
    the chain's first row follows."""
    fields = payloads.payload(
        kind=_kind_in(policy_text),
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        params=intent.params,
        executor=intent.executor,
    )
    if payloads.payload_digest(fields, salt=intent.payload_salt) != intent.payload_digest:
        return False
    # Whoever changes the payload can make the digest fit; the chain was begun over the digest of then.
    return begun_with == genesis(intent)


# --- what was erased


def erasings(rows: Iterable[Chained]) -> Iterator[Observation]:
    """The rows that say that something about people was erased, oldest first."""
    return (row for row in rows if isinstance(row, Observation) and row.what == Observed.ERASED)


# What an erased intent keeps, besides what its last transition pins down.
_KEPT: Final = (
    *(name for name in Intent.GENESIS if name not in Intent.ERASABLE),
    *("subject", "family", "amount_minor", "currency", "amount_exponent"),
)


def kept_digest(intent: Intent, begin: str) -> str:
    """Over the columns that an erasing leaves. `begin` is what the chain's first row follows."""
    return digest(canonical({name: plain(getattr(intent, name)) for name in _KEPT}), salt=begin)


def _not_as_kept(story: Story) -> Iterator[str]:
    intent: Intent = story.owner
    row = next((row for row in erasings(story.rows) if "kept" in json.loads(row.facts)), None)
    if row is None:
        yield "it is marked as erased, and nobody is on record as having erased it"
        return
    if any(getattr(intent, name) != blank for name, blank in Intent.ERASABLE.items()):
        yield "it is marked as erased and says something about people"
    if json.loads(row.facts)["kept"] != kept_digest(intent, begun(story.rows) or ""):
        yield "what was kept of it is not what the row of its erasing says"


# --- evidence


def _changed_evidence(story: Story) -> Iterator[str]:
    erased = _on_record_as_erased(story)
    for found in story.evidence.values():
        if found.erased_at is None and digest(found.text, salt=found.salt) != found.digest:
            yield f"evidence {found.pk}: its text was changed"
        if found.erased_at is not None and found.text:
            yield f"evidence {found.pk}: it is marked as erased and has a text"
        if found.erased_at is not None and found.pk not in erased:
            yield f"evidence {found.pk}: its text is gone, and nobody is on record as having erased it"
    for row in story.rows:
        for pk, told in refs_of(row):
            if pk not in story.evidence:
                yield f"evidence {pk}: {name_of(row)} rests on it and it is gone"
            elif story.evidence[pk].digest != told:
                yield f"evidence {pk}: its digest is not the one that {name_of(row)} names"


def _on_record_as_erased(story: Story) -> set[int]:
    """An intent's erasing names what it erased; a case's is a comment, whose text does."""
    found: set[int] = set()
    for row in erasings(story.rows):
        with suppress(*UNREADABLE):  # told where its references are read
            found |= {pk for pk, _ in evidence_refs(row.evidence)}
    said = " ".join(
        story.evidence[pk].text
        for row in story.rows
        if getattr(row, "kind", "") == "erased"
        for pk, _ in refs_of(row)
        if pk in story.evidence
    )
    return found | {pk for pk, one in story.evidence.items() if said and one.digest in said}


def refs_of(row: Chained) -> list[tuple[int, str]]:
    """The evidence that a row names, with its digest; a comment names its text."""
    digest_of_text = getattr(row, "text_digest", "")
    text = [(int(getattr(row, "text_id")), str(digest_of_text))] if digest_of_text else []  # noqa: B009  comments alone have it
    return [*evidence_refs(getattr(row, "evidence", "") or "[]"), *text]
