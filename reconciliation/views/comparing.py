"""The intent beside what the ledger shows, field by field."""

from dataclasses import dataclass
from datetime import UTC, datetime

from actions.models import Intent
from reconciliation.models import LedgerEntry
from reconciliation.views import words


@dataclass(frozen=True)
class Row:
    """One line of the comparison. `same`: None when the ledger says nothing about it."""

    label: str
    intended: str
    found: str
    same: bool | None


def entries_for(intent: Intent) -> list[LedgerEntry]:
    """The entries that could be about this intent, those with its key first, then the newest."""
    by_key = LedgerEntry.objects.filter(downstream=intent.downstream_id, key=intent.idempotency_key)
    by_subject = LedgerEntry.objects.filter(downstream=intent.downstream_id, subject=intent.subject)
    found = {row.pk: row for row in [*by_key.order_by("-pk")[:50], *by_subject.order_by("-pk")[:50]]}
    return list(found.values())


def compare(intent: Intent, entry: LedgerEntry) -> list[Row]:
    """Amount, order, key, time and payee; what is wrong is marked, what is not known is not."""
    sent = intent.first_maybe_sent_at
    return [
        _row(
            "Amount",
            _amount(intent.amount_minor, intent.currency),
            _amount(entry.amount_minor, entry.currency),
        ),
        _row("Order", intent.subject, entry.subject),
        _row("Key", intent.idempotency_key, entry.key),
        Row(
            "When",
            f"sent {_time(sent)}",
            f"booked {_time(entry.booked_at)}",
            _in_order(sent, entry.booked_at),
        ),
    ]


def _row(label: str, intended: str, found: str) -> Row:
    return Row(label, intended or "—", found or "—", intended == found if intended and found else None)


def _amount(minor: int | None, currency: str) -> str:
    # A plain space: the page marks every character here that nobody sees, because entries come from outside.
    return "" if minor is None else words.amount(minor, currency).replace(words.NO_BREAK, " ")


def _time(at: datetime | None) -> str:
    return "—" if at is None else at.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _in_order(sent: datetime | None, booked: datetime | None) -> bool | None:
    # The downstream's clock may be a little off; a minute before sending is not "before".
    return None if sent is None or booked is None else (sent - booked).total_seconds() < 60
