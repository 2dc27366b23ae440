"""Finds what people have in hand: an order, a key, the downstream's id, a ledger entry, an agent, our own id.

Exactly, and by its beginning from three characters on. Each question is asked by itself, because one OR over several
columns would ride no index; a beginning is a range of bytes, in the order of its own index, so that its cost depends
on what is shown and not on how many fit.
"""

import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, OrderBy, Q, QuerySet

from actions import subjects
from actions.models import Agent, Downstream, Intent
from reconciliation.entries import HAS_EXTERNAL_ID
from reconciliation.models import LedgerEntry, Match, Review

MOST = 50
SHORTEST = 3
_MOST_AGENTS = 5
# Above every character that a text can hold.
_LAST = "\U0010ffff"
_BOOK = "api"


@dataclass(frozen=True)
class EntryHit:
    """A ledger entry with the id that was looked for, the intents that it has to do with, and the case about it."""

    entry: LedgerEntry
    matches: list[Match]
    case: Review | None


@dataclass(frozen=True)
class Found:
    """`exact`, `beginning`: ids of intents, best first. `cut`: more than these fit."""

    exact: list[UUID]
    beginning: list[UUID]
    agents: list[Agent]
    entries: list[EntryHit]
    cut: bool

    @property
    def ids(self) -> list[UUID]:
        return [*self.exact, *self.beginning]


def search(text: str) -> Found:
    """Everything that `text` names, or begins the name of. Each question brings no more than MOST answers."""
    q = unicodedata.normalize("NFC", text.strip())
    entries, agents = _entries(q), _agents(q)
    exact, cut = _merged([*_exactly(q), *_settled_by(entries), *(_of_agent(a) for a in agents if a.name == q)])
    begun, cut_too = _merged(_beginning(q) if len(q) >= SHORTEST else [])
    if not exact and not begun:
        begun, cut_too = _merged(_of_agent(agent) for agent in agents)
    beginning = [pk for pk in begun if pk not in set(exact)]
    return Found(exact, beginning, agents, entries, cut or cut_too)


def _merged(questions: Iterable[QuerySet[Any]]) -> tuple[list[UUID], bool]:
    """The answers to all questions, each once, in their order; and whether a question had more of them."""
    found: dict[UUID, None] = {}
    cut = False
    for question in questions:
        ids = list(question.values_list("pk", flat=True)[: MOST + 1])
        cut = cut or len(ids) > MOST
        found |= dict.fromkeys(ids[:MOST])
    return list(found), cut


def _exactly(q: str) -> Iterator[QuerySet[Intent]]:
    intents = Intent.objects.order_by()
    if (pk := _uuid(q)) is not None:
        yield intents.filter(pk=pk)
    # An order names its lines too.
    named = Q(subject=q) | Q(family=q)
    yield intents.filter(named, family=subjects.family_of(q)).order_by("family", "-created_at")
    yield intents.filter(idempotency_key=q)
    yield intents.filter(request_key=q)
    yield intents.filter(HAS_EXTERNAL_ID, external_id=q)


def _beginning(q: str) -> Iterator[QuerySet[Intent]]:
    intents = Intent.objects.order_by()
    family, slash, _ = q.partition("/")
    if slash:
        yield intents.filter(family=family, subject__startswith=q).order_by("family", "-created_at")
    else:
        yield _begins(intents, "family", q)
    yield _begins(intents, "idempotency_key", q)
    yield _begins(intents, "request_key", q)
    yield _begins(intents.filter(HAS_EXTERNAL_ID), "external_id", q)
    if (between := _ids_beginning(q)) is not None:
        yield intents.filter(pk__range=between).order_by("pk")


def _begins(intents: QuerySet[Intent], name: str, q: str) -> QuerySet[Intent]:
    """In the order of the column's own bytes, whatever the database's collation is."""
    if connection.vendor == "postgresql":
        return intents.filter(**{f"{name}__startswith": q}).order_by(ByteOrder(F(name)))
    # LIKE folds case on SQLite, so it rides no index; a range of bytes does.
    return intents.filter(**{f"{name}__gte": q, f"{name}__lt": q + _LAST}).order_by(name)


class ByteOrder(OrderBy):
    """The order of a `varchar_pattern_ops` index: PostgreSQL reads it only for somebody who asks for it by name.

    The comment is for Django, which looks for a direction at the end; the operator is one already.
    """

    def as_postgresql(self, compiler: Any, connection: Any) -> Any:
        template = "%(expression)s USING ~<~ /* ASC */"
        return OrderBy.as_sql(self, compiler, connection, template=template)  # type: ignore[call-arg]


def _of_agent(agent: Agent) -> QuerySet[Intent]:
    return Intent.objects.filter(agent=agent).order_by("-created_at", "-id")


def _agents(q: str) -> list[Agent]:
    """Agents are few: those whose name or title begins with it, whoever's name it is first."""
    if len(q) < SHORTEST:
        return list(Agent.objects.filter(name=q))
    begins = Agent.objects.filter(Q(name__istartswith=q) | Q(title__istartswith=q)).order_by("name")[:_MOST_AGENTS]
    return sorted({*begins, *Agent.objects.filter(name=q)}, key=lambda agent: (agent.name != q, agent.name))


def _entries(q: str) -> list[EntryHit]:
    books = list(Downstream.objects.values_list("pk", flat=True))
    found = LedgerEntry.objects.filter(downstream__in=books, book=_BOOK, entry_id=q).select_related("downstream")
    entries = list(found.order_by()[:MOST])
    matches = Match.objects.filter(entry__in=entries, released_at__isnull=True).select_related("intent__kind")
    cases = Review.objects.filter(entry__in=entries, closed_at__isnull=True)
    by_entry = {case.entry_id: case for case in cases}
    ties = list(matches)
    return [EntryHit(one, [tie for tie in ties if tie.entry_id == one.pk], by_entry.get(one.pk)) for one in entries]


def _settled_by(entries: Iterable[EntryHit]) -> Iterator[QuerySet[Intent]]:
    tied = [tie.intent_id for hit in entries for tie in hit.matches if tie.intent_id is not None]
    if tied:
        yield Intent.objects.filter(pk__in=tied).order_by()


def _uuid(text: str) -> UUID | None:
    with suppress(ValueError):
        return UUID(text)
    return None


def _ids_beginning(q: str) -> tuple[UUID, UUID] | None:
    """The lowest and the highest id whose text begins with `q`; None when no id does."""
    digits = q.replace("-", "").lower()
    if not SHORTEST < len(digits) <= 32 or not set(digits) <= set("0123456789abcdef"):
        return None
    return UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
