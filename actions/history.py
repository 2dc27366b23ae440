"""The chain of digests over everything that is ever written about an intent.

Each link's digest is SHA-256 over the canonical JSON of `{"previous": …, "row": …}`; which fields of a row count
is listed by the row's class (`CHAINED`) and in docs/history.md. The chain hangs on the intent's own unchanging
fields, so that exchanging the intent under its history shows as well.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.apps import apps
from django.db import models

from actions import chains
from actions.canonical import canonical
from actions.chains import Story, facts_of, genesis, link_digest
from actions.locking import for_change
from actions.models import Chained, Evidence, Intent, Observation, Observed, PolicySnapshot, Transition

__all__ = ["facts_of", "genesis", "link_digest"]

R = TypeVar("R", bound=Chained)


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
    intent_id: UUID, what: Observed, *, by: str, evidence: Iterable[Evidence] = (), facts: str = "", at: datetime
) -> Observation:
    """Writes down what changed no status. Call it inside a transaction."""
    row = Observation(intent_id=intent_id, what=what, by=by, evidence=refs(evidence), facts=facts)
    return append(row, owner=Intent, pk=intent_id, at=at)


def refs(evidence: Iterable[Evidence]) -> str:
    """How history rows name evidence: canonical `[[id, digest], …]`."""
    return canonical([[found.pk, found.digest] for found in evidence])


def rows_of(intent_id: Any) -> list[Chained]:
    """Every history row of one intent, of whatever table, in the chain's order."""
    found: list[Chained] = []
    for model in chained_models():
        if "intent" in names_of(model):
            found += model._default_manager.filter(**{"intent_id": intent_id})
    return sorted(found, key=lambda row: row.position)


def chained_models() -> Sequence[type[Chained]]:
    return [model for model in apps.get_models() if issubclass(model, Chained)]


def faults(intent: Intent) -> list[str]:
    """What is wrong with an intent and its history; empty when everything fits together."""
    return chains.intent_faults(story_of(intent))


def story_of(intent: Intent) -> Story:
    """Everything that the check of an intent needs, in a handful of queries."""
    return Story(
        owner=intent,
        rows=rows_of(intent.pk),
        evidence={found.pk: found for found in Evidence.objects.filter(intent=intent)},
        policy=PolicySnapshot.objects.filter(pk=intent.policy_id).values_list("text", flat=True).first(),
    )


def case_faults(review: models.Model) -> list[str]:
    """The same for a case about an entry that no intent explains: its decisions and comments are a chain of its
    own."""
    return chains.case_faults(story_of_case(review))


def story_of_case(review: models.Model) -> Story:
    """Its rows are those that name the case and no intent."""
    rows: list[Chained] = []
    for model in chained_models():
        if "review" in names_of(model):
            rows += model._default_manager.filter(**{"review_id": review.pk, "intent_id": None})
    rows.sort(key=lambda row: row.position)
    return case_story(review, rows, Evidence.objects.in_bulk(named_in(rows)))


def case_story(review: models.Model, rows: Sequence[Chained], evidence: Mapping[int, Evidence]) -> Story:
    """Of `evidence` (of many cases, perhaps) its own."""
    return Story(owner=review, rows=rows, evidence={pk: evidence[pk] for pk in named_in(rows) if pk in evidence})


def named_in(rows: Iterable[Chained]) -> list[int]:
    """The ids of the evidence that rows name, in order; what can't be read is told by the check."""
    named: set[int] = set()
    for row in rows:
        with suppress(*chains.UNREADABLE):
            named |= {pk for pk, _ in chains.refs_of(row)}
    return sorted(named)


def names_of(model: type[Chained]) -> set[str]:
    return {field.name for field in model._meta.get_fields()}


def payload_fits(intent: Intent) -> bool:
    """Whether the intent still asks for what its payload digest, and its chain, were made over. Of an erased one
    nobody can tell: False."""
    begun = Transition.objects.filter(intent_id=intent.pk, position=1).values_list("previous", flat=True).first()
    return chains.payload_fits(intent, policy_text=intent.policy.text, begun_with=begun)
