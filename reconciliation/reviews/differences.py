"""Money that ended up elsewhere than intended: what is left to do after somebody has established what happened.

It is listed until a person says that it is done: taken back, sent after all, or compared and found right.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from actions import evidence, times
from actions.errors import BadDecision, NotFound
from actions.locking import for_change
from actions.models import EvidenceKind, Intent
from actions.statuses import Status
from reconciliation import ties
from reconciliation.models import (
    Decision,
    Difference,
    EntryRole,
    EntryState,
    LedgerEntry,
    LeftToDo,
    Match,
    MatchRole,
)
from reconciliation.reviews import people

# Characters of a note, whatever it is about.
MAX_NOTE = 4_000


@dataclass(frozen=True)
class Left:
    """One thing to do, in minor units."""

    what: LeftToDo
    amount_minor: int | None
    currency: str
    entry: LedgerEntry | None = None


def between(intended: tuple[int | None, str], settled: tuple[int | None, str]) -> Left | None:
    """What is left when `settled` moved instead of `intended` (amount in minor units, currency). Pure."""
    (wanted, currency), (moved, its_currency) = intended, settled
    if wanted is None or moved is None:
        return None
    if its_currency not in ("", currency):
        return Left(LeftToDo.COMPARE, moved or None, its_currency)
    if moved == wanted:
        return None
    return Left(LeftToDo.RECOVER if moved > wanted else LeftToDo.SEND, abs(moved - wanted), currency)


def settle(intent: Intent, decision: Decision, *, now: datetime) -> None:
    """Lists what is left after a decision or an override took effect, and judges the entries under its key that do
    not settle it, so that no look makes a case of them again. The caller holds the intent's lock."""
    left: list[Left | None] = []
    if intent.status == Status.CONFIRMED:
        left.append(
            between(
                (intent.amount_minor, intent.currency),
                (intent.settled_amount_minor, intent.settled_currency or intent.currency),
            )
        )
    for entry in _others_under_its_key(intent):
        _judge(intent, entry, decision, now)
        left.append(left_of(entry))
    for one in left:
        if one is not None:
            put_down(intent, decision, one, now)


def _others_under_its_key(intent: Intent) -> Iterable[LedgerEntry]:
    """The entries that bear the intent's own key, or were linked to it, have moved money, and don't settle it.

    Final ones: what is pending may still stay where it is, and is a case again once it has moved.
    """
    linked = Match.objects.filter(intent=intent, released_at=None, role__in=[MatchRole.DUPLICATE, MatchRole.KNOWN])
    own = LedgerEntry.objects.filter(
        Q(role=EntryRole.EFFECT) | Q(role=EntryRole.REVERSAL),
        Q(key=intent.idempotency_key) | Q(pk__in=linked.values("entry")),
        downstream=intent.downstream_id,
        state=EntryState.FINAL,
    )
    settles = Match.objects.filter(intent=intent, role=MatchRole.SETTLES, released_at=None).values("entry")
    found = own.exclude(pk__in=settles)
    if intent.status == Status.CONFIRMED and intent.external_id:
        found = found.exclude(entry_id=intent.external_id)
    return found.order_by("pk")


def _judge(intent: Intent, entry: LedgerEntry, decision: Decision, now: datetime) -> None:
    role = MatchRole.DUPLICATE if entry.role == EntryRole.EFFECT else MatchRole.KNOWN
    by = f"person:{decision.person_id}"
    earlier = Match.objects.filter(entry=entry, intent=intent, released_at=None)
    if earlier.filter(role=role, entry_state=entry.state).exists():
        return
    earlier.update(released_at=now, released_by=by)
    if not Match.objects.filter(entry=entry, released_at=None).exists():
        ties.tie(entry, intent, role, by=by, now=now)


def left_of(entry: LedgerEntry) -> Left:
    """An effect too many is to come back; what was taken back has not reached whom it was for."""
    what = LeftToDo.RECOVER if entry.role == EntryRole.EFFECT else LeftToDo.SEND
    return Left(what, entry.amount_minor or None, entry.currency, entry)


def put_down(intent: Intent, decision: Decision, left: Left, now: datetime) -> None:
    """Lists it, once: the same again, about the same entry, is the same thing to do."""
    same = Difference.objects.filter(intent=intent, what=left.what, entry=left.entry, currency=left.currency)
    if left.entry is not None and same.exists():
        return
    if same.filter(amount_minor=left.amount_minor, resolved_at=None).exists():
        return
    Difference.objects.create(
        intent=intent,
        entry=left.entry,
        decision=decision,
        what=left.what,
        amount_minor=left.amount_minor,
        currency=left.currency,
        opened_at=now,
    )


def open_ones() -> QuerySet[Difference]:
    """What is left to do, the oldest first."""
    found = Difference.objects.select_related("intent__kind", "intent__downstream", "entry", "decision__person")
    return found.filter(resolved_at=None).order_by("opened_at", "pk")


def resolve(pk: int, *, person: User, note: str) -> Difference:
    """Somebody has done it, or found that there is nothing to do; the note says which. Done once: a second time
    raises BadDecision, as does a missing or too long note. Raises NotFound, PersonNotAllowed."""
    people.must(people.may_decide(person))
    words = note.strip()
    if not words or len(words) > MAX_NOTE:
        raise BadDecision(f"Say in a note, of at most {MAX_NOTE} characters, what was done about it.")
    with transaction.atomic():
        row = for_change(Difference).filter(pk=pk).first()
        if row is None:
            raise NotFound()
        if row.resolved_at is not None:
            raise BadDecision("Somebody has resolved this already.")
        now = times.now()
        kept = evidence.store(
            intent_id=row.intent_id, kind=EvidenceKind.NOTE, source=f"person:{person.pk}", content=words, now=now
        )
        row.resolved_at, row.resolved_by, row.note = now, f"person:{person.pk}", kept
        row.save(update_fields=["resolved_at", "resolved_by", "note"])
    return row
