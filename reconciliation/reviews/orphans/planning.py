"""What can be decided about an entry that no intent explains, and what would follow from it."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from actions import policy, subjects
from actions.canonical import canonical, digest
from actions.models import Intent
from actions.models.history import plain
from actions.statuses import Status
from reconciliation import entries
from reconciliation.models import (
    Choice,
    DecisionReason,
    EntryRole,
    EntryState,
    LedgerEntry,
    Purpose,
    Review,
)
from reconciliation.reviews import relinking

CHOICES = (Choice.LINK, Choice.DUPLICATE, Choice.NOT_OURS)
# As many intents on the entry's order are offered by themselves; any other can be named.
MOST_OFFERED = 10


class Follows(StrEnum):
    """What a link does."""

    CONFIRM = "confirm"
    TIE = "tie"
    DUPLICATE = "duplicate"
    DISPUTE = "dispute"
    TAKEN_BACK = "taken_back"


WORDS = {
    Follows.CONFIRM: "It is confirmed: this entry settles it.",
    Follows.TIE: "It stays confirmed, and this entry is what settled it.",
    Follows.DUPLICATE: "Another entry settles it: this one is its duplicate, and money to recover.",
    Follows.DISPUTE: "It counts as failed: it becomes disputed, and a person looks whether that was wrong.",
    Follows.TAKEN_BACK: "It stays confirmed, and what was taken back is listed as still to send.",
}


@dataclass(frozen=True)
class Seen:
    """What was on the person's screen: the named intent's version (0: none), and the digest of the facts."""

    version: int
    digest: str


@dataclass(frozen=True)
class Offer:
    """An intent that can be named, and what would follow. `against_*`: why it can't be, "" when it can."""

    intent: Intent
    seen: Seen
    follows: str
    against_link: str
    against_duplicate: str
    needs_two: bool


@dataclass(frozen=True)
class Ballot:
    choice: Choice
    reason: DecisionReason
    note: str
    seen: Seen
    named: str


def offers(entry: LedgerEntry, *, besides: str = "") -> list[Offer]:
    """The newest intents on the entry's order, and the one that somebody named (`besides`: its id or key), first.

    A bounded number of queries.
    """
    named = find(entry, besides) if besides else None
    on_order = Intent.objects.none()
    if entry.subject:
        on_order = Intent.objects.filter(downstream=entry.downstream_id, family=subjects.family_of(entry.subject))
    found = {named.pk: named} if named else {}
    rows = on_order.select_related("kind", "policy").order_by("-created_at", "-pk")[:MOST_OFFERED]
    found |= {row.pk: row for row in rows if row.pk not in found}
    return [_offer(entry, intent) for intent in found.values()]


def _offer(entry: LedgerEntry, intent: Intent) -> Offer:
    follows, against = plan(entry, intent)
    return Offer(
        intent=intent,
        seen=_seen(entry, intent, follows),
        follows=WORDS[follows] if follows else "",
        against_link=against,
        against_duplicate=against_duplicate(entry, intent),
        needs_two=needs_two(entry, intent),
    )


def find(entry: LedgerEntry, named: str) -> Intent | None:
    """The intent of the entry's downstream with this id or idempotency key."""
    return relinking.named(entry.downstream_id, named)


def seen(entry: LedgerEntry, intent: Intent | None) -> Seen:
    """What a page that shows them now has to send back with a decision."""
    return _seen(entry, intent, plan(entry, intent)[0] if intent is not None else None)


def _seen(entry: LedgerEntry, intent: Intent | None, follows: Follows | None) -> Seen:
    facts: list[Any] = [plain(getattr(entry, name)) for name in _FACTS]
    if intent is None:
        return Seen(0, digest(canonical([*map(str, facts)])))
    return Seen(intent.version, digest(canonical([*map(str, facts), str(intent.pk), str(follows)])))


_FACTS = (
    "entry_id",
    "role",
    "state",
    "key",
    "subject",
    "amount_minor",
    "currency",
    "settled_amount_minor",
    "settled_currency",
    "booked_at",
)


def plan(entry: LedgerEntry, intent: Intent) -> tuple[Follows | None, str]:
    """What a link of this entry to this intent does now; or None, and why it can't be made."""
    follows, against = _plan(entry, intent)
    against = relinking.against_key(entry, intent) or against
    return (None, against) if against else (follows, "")


def _plan(entry: LedgerEntry, intent: Intent) -> tuple[Follows | None, str]:
    status = intent.status
    if entry.role == EntryRole.REVERSAL:
        why = "" if status == Status.CONFIRMED else "Only what is confirmed can have been taken back."
        return Follows.TAKEN_BACK, why or _against_pending(entry)
    if status == Status.FAILED:
        return Follows.DISPUTE, ""
    if status == Status.CONFIRMED and relinking.settled_by_another(entry, intent):
        return Follows.DUPLICATE, _against_pending(entry)
    return Follows.TIE if status == Status.CONFIRMED else Follows.CONFIRM, relinking.against_settling(entry, intent)


def against_duplicate(entry: LedgerEntry, intent: Intent) -> str:
    """Why this entry can't be called a duplicate of this intent; "" when it can."""
    if entry.role != EntryRole.EFFECT:
        return "What takes something back is no duplicate."
    if intent.status != Status.CONFIRMED:
        return "Only what is confirmed can have a duplicate."
    return relinking.against_key(entry, intent) or _against_pending(entry)


def _against_pending(entry: LedgerEntry) -> str:
    """Money that may still stay where it is, is neither to be recovered nor to be sent again."""
    return "" if entry.state == EntryState.FINAL else "The entry is not final: nothing follows from it yet."


def needs_two(entry: LedgerEntry, intent: Intent | None) -> bool:
    """Above the second limit of the named intent's kind two people agree; that something is not ours, one says.

    What was intended counts, what the entry was asked for, and what it moved, each by its own currency's limits.
    Where a book names no currency, the intent's is meant.
    """
    if intent is None:
        return False
    rules = policy.read(intent.policy.text)
    amounts = ((intent.amount_minor, intent.currency), (entry.amount_minor, entry.currency), entries.moved(entry))
    return any(policy.needs_two_people(rules, minor, currency or intent.currency) for minor, currency in amounts)


def blocked(review: Review) -> bool:
    """Whether a case can't be decided here: it is closed, or about an intent."""
    return review.closed_at is not None or review.purpose != Purpose.ENTRY or review.entry_id is None
