"""An entry that was tied to the wrong intent goes to its own, in the transaction of the correction."""

from contextlib import suppress
from datetime import datetime
from uuid import UUID

from django.db import IntegrityError

from actions import evidence, money
from actions.errors import BadDecision, SeenIsStale
from actions.models import Evidence, EvidenceKind, Intent
from actions.statuses import Status
from reconciliation import entries
from reconciliation.models import ClosedHow, Decision, EntryRole, EntryState, LedgerEntry, Match, MatchRole
from reconciliation.reviews import effects, opening


def settling(intent: Intent) -> LedgerEntry | None:
    """The entry that settles the intent now."""
    tie = Match.objects.filter(intent=intent, role=MatchRole.SETTLES, released_at=None).select_related("entry")
    found = tie.first()
    return found.entry if found else None


def against(entry: LedgerEntry, to: Intent, *, instead_of: Intent) -> str:
    """Why an entry that settles `instead_of` can't be tied to `to`; "" when it can."""
    if to.pk == instead_of.pk:
        return "Name another intent than the one that is corrected."
    if to.downstream_id != entry.downstream_id:
        return "That intent was sent to another downstream."
    if to.status == Status.CONFIRMED and settled_by_another(entry, to):
        return "Another entry settles that intent already."
    return against_settling(entry, to) or against_key(entry, to)


def against_settling(entry: LedgerEntry, intent: Intent) -> str:
    """Why an entry can't be what settles an intent, by what both are, whoever says so: a correction, or whoever links
    it; "" when it can. Whose key it bears is asked apart: `against_key`."""
    return _against_kind(entry) or _against_its_status(entry, intent)


def against_entry(entry: LedgerEntry, intent: Intent) -> str:
    """Why an entry can settle no intent, or not this one, whatever its status; "" when it can."""
    return _against_kind(entry) or against_key(entry, intent)


def _against_kind(entry: LedgerEntry) -> str:
    if entry.role != EntryRole.EFFECT or entry.state != EntryState.FINAL:
        return "The entry settles nothing: it is not final, or takes something back."
    return ""


def against_key(entry: LedgerEntry, intent: Intent) -> str:
    """Why an entry can have nothing to do with an intent; "" when it can."""
    if entry.key in ("", intent.idempotency_key):
        return ""
    anothers = Intent.objects.filter(downstream=entry.downstream_id, idempotency_key=entry.key).exists()
    return "The entry bears the key of another intent." if anothers else ""


def settled_by_another(entry: LedgerEntry, intent: Intent) -> bool:
    """Whether it is known which entry settles the intent, and it is not this one."""
    return settling(intent) is not None or intent.external_id not in ("", None, entry.entry_id)


def _against_its_status(entry: LedgerEntry, to: Intent) -> str:
    if to.status in (Status.HELD, Status.RECORDED, Status.CANCELLED):
        return "That intent was not sent, so this entry can't be what it did."
    if to.lease_until is not None:
        return "That intent is being sent at this moment: wait for its answer."
    if to.status == Status.CONFIRMED and not _fits(entry, to):
        return "That intent was settled with another amount than this entry shows."
    return ""


def _fits(entry: LedgerEntry, to: Intent) -> bool:
    """Whether it shows what the intent was settled with (else: what was intended), as it was asked for or as it was
    booked: an answer echoes the one, a look saw the other. A book that names no currency means the intent's."""
    settled = (to.settled_amount_minor, to.settled_currency or to.currency)
    wanted = (to.amount_minor, to.currency) if settled[0] is None else settled
    shown = ((entry.amount_minor, entry.currency), entries.moved(entry))
    return wanted[0] is None or wanted in {(minor, currency or wanted[1]) for minor, currency in shown}


def relink(entry: LedgerEntry, to: Intent, first: Decision, *, by: str, now: datetime) -> Intent:
    """Ties the released entry to the intent that it belongs to, which it settles. The caller holds both intents,
    their families and cases, and the entry.

    Raises BadDecision when that can't be (any more), SeenIsStale when somebody else tied it at this moment.
    """
    assert first.intent is not None
    if why := against(entry, to, instead_of=first.intent):
        raise BadDecision(why)
    was = to.status
    try:
        moved = effects.settle_by(entry, to, first, by=by, grounds=[_grounds(first, entry, to, by, now)], now=now)
    except IntegrityError as raced:
        raise SeenIsStale() from raced
    if was != moved.status:
        # It is confirmed by this. A case about one that was confirmed before asks something else.
        opening.close(moved, ClosedHow.DECISION, now=now)
        opening.hold_the_unsent(moved, now)
    return moved


def _grounds(first: Decision, entry: LedgerEntry, to: Intent, by: str, now: datetime) -> Evidence:
    """What the other intent's own history keeps of the correction."""
    said = {
        "corrected_intent": str(first.intent_id),
        "decision": first.pk,
        "reason": str(first.reason),
        "proposed_by": f"person:{first.person_id}",
        "entry": entry.entry_id,
        "amount": money.describe(entry.amount_minor, entry.currency),
    }
    return evidence.store(intent_id=to.pk, kind=EvidenceKind.OUTSIDE, source=by, content=said, now=now)


def named(downstream_id: int, text: str) -> Intent | None:
    """The intent of this downstream with this id or, where none has it, this idempotency key."""
    if not (text := text.strip()):
        return None
    found = Intent.objects.filter(downstream=downstream_id).select_related("kind", "policy", "downstream")
    by_id = None
    with suppress(ValueError):
        by_id = found.filter(pk=UUID(text)).first()
    return by_id or found.filter(idempotency_key=text).first()
