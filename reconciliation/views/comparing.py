"""The intent beside what the ledger shows, field by field."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from actions.models import Intent
from reconciliation.models import LedgerEntry
from reconciliation.views import words

# So many entries stand side by side; more are another table.
ABREAST = 3
# A downstream's clock may be a little off: so much before sending is not "before".
_CLOCKS = timedelta(seconds=60)


@dataclass(frozen=True)
class Row:
    """One line of the comparison. `same`: None when the ledger says nothing about it.

    `intended_at` and `found_at`: where the line is about a time; `later`: how one lies to the other, in words.
    """

    label: str
    intended: str
    found: str
    same: bool | None
    intended_at: datetime | None = None
    found_at: datetime | None = None
    later: str = ""


@dataclass(frozen=True)
class Candidate:
    """A ledger entry beside the intent. `eligible`: the newest look says that it may be the intent's own."""

    entry: LedgerEntry
    rows: list[Row]
    eligible: bool
    differs: str


@dataclass(frozen=True)
class Line:
    """One field of the intent, and what each of several entries says of it."""

    label: str
    intended: str
    intended_at: datetime | None
    cells: list[Row]


@dataclass(frozen=True)
class Table:
    """The intent and at most `ABREAST` entries, side by side."""

    candidates: Sequence[Candidate]
    lines: list[Line] = field(default_factory=list)


def entries_for(intent: Intent) -> list[LedgerEntry]:
    """The entries that could be about this intent, those with its key first, then the newest."""
    by_key = LedgerEntry.objects.filter(downstream=intent.downstream_id, key=intent.idempotency_key)
    by_subject = LedgerEntry.objects.filter(downstream=intent.downstream_id, subject=intent.subject)
    found = {row.pk: row for row in [*by_key.order_by("-pk")[:50], *by_subject.order_by("-pk")[:50]]}
    return list(found.values())


def candidate(intent: Intent, entry: LedgerEntry, *, eligible: bool) -> Candidate:
    rows = compare(intent, entry)
    return Candidate(entry, rows, eligible, ", ".join(row.label.lower() for row in rows if row.same is False))


def tables(candidates: Sequence[Candidate]) -> list[Table]:
    """The candidates in columns beside the intent, `ABREAST` to a table."""
    return [_table(candidates[start : start + ABREAST]) for start in range(0, len(candidates), ABREAST)]


def _table(candidates: Sequence[Candidate]) -> Table:
    by_field = zip(*(one.rows for one in candidates), strict=True)
    return Table(candidates, [Line(c[0].label, c[0].intended, c[0].intended_at, list(c)) for c in by_field])


def compare(intent: Intent, entry: LedgerEntry) -> list[Row]:
    """Amount, order, key, time and payee; what is wrong is marked, what is not known is not."""
    rows = [
        _amounts(intent, entry),
        _row("Order", intent.subject, entry.subject),
        _row("Key", intent.idempotency_key, entry.key),
        _times(intent.first_maybe_sent_at, entry.booked_at),
    ]
    return [*rows, Row("Payee", intent.payee, "—", None)] if intent.payee else rows


def agreement(found: Candidate) -> str:
    """What speaks for an entry beside the key: `Amount and order agree; it was booked 1 s after sending.`

    Empty when something differs: then the differences speak.
    """
    agree = [row.label.lower() for row in found.rows if row.same and row.label in ("Amount", "Order")]
    if found.differs or not agree:
        return ""
    later = next((row.later for row in found.rows if row.later), "")
    fits = f"{' and '.join(agree).capitalize()} agree{'s' if len(agree) == 1 else ''}"
    return f"{fits}; it was booked {later}." if later else f"{fits}."


def _row(label: str, intended: str, found: str) -> Row:
    return Row(label, intended or "—", found or "—", intended == found if intended and found else None)


def _amounts(intent: Intent, entry: LedgerEntry) -> Row:
    """As it was asked for; what was booked instead stands beside it, and is another amount in the same currency."""
    intended = _amount(intent.amount_minor, intent.currency)
    row = _row("Amount", intended, _amount(entry.amount_minor, entry.currency))
    if entry.settled_amount_minor is None:
        return row
    currency = entry.settled_currency or entry.currency
    booked = _amount(entry.settled_amount_minor, currency)
    if booked == row.found:
        return row
    other = currency == intent.currency and booked != intended
    return Row(row.label, row.intended, f"{row.found}, booked as {booked}", False if other else row.same)


def _amount(minor: int | None, currency: str) -> str:
    # Plain spaces: the page marks every character here that nobody sees, because entries come from outside.
    return "" if minor is None else " ".join(words.amount(minor, currency).split())


def _times(sent: datetime | None, booked: datetime | None) -> Row:
    later = ""
    if sent is not None and booked is not None:
        later = _apart(sent, booked)
    return Row(
        "When",
        f"sent {_time(sent)}" if sent else "not sent",
        f"booked {_time(booked)}" if booked else "—",
        _in_order(sent, booked),
        intended_at=sent,
        found_at=booked,
        later=later,
    )


def _apart(sent: datetime, booked: datetime) -> str:
    """`1 s after sending`."""
    between = abs(booked - sent)
    if between < timedelta(seconds=1):
        return "within a second of sending"
    return f"{words.span(between).replace(words.NO_BREAK, ' ')} {'after' if booked > sent else 'before'} sending"


def _time(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _in_order(sent: datetime | None, booked: datetime | None) -> bool | None:
    return None if sent is None or booked is None else sent - booked < _CLOCKS
