"""Stores what a book shows: one row per entry, whoever saw it and however often."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from actions import subjects
from actions.canonical import canonical, digest
from actions.connectors.base import Entry, Page
from actions.models import Downstream, Evidence, Intent
from actions.statuses import UNSETTLED
from reconciliation.models import EntryRole, EntryState, LedgerEntry, Match
from reconciliation.verdicts import Candidate


def store_pages(
    downstream: Downstream, pages: Iterable[tuple[Page, Evidence]], *, now: datetime
) -> list[LedgerEntry]:
    """Stores the entries of one look's pages, in the order seen, each once."""
    found: dict[int, LedgerEntry] = {}
    unnamed: Counter[str] = Counter()
    for page, seen in pages:
        for entry in page.entries:
            row = _store(downstream, entry, _id_of(entry, unnamed), seen, page.url, now)
            found[row.pk] = row
    return list(found.values())


def _id_of(entry: Entry, unnamed: Counter[str]) -> str:
    """The entry's own id; for one without: the digest of its content and the how-manieth of its like it is."""
    if entry.entry_id:
        return entry.entry_id[:255]
    content = digest(canonical(_plain(dict(entry.raw))))
    unnamed[content] += 1
    return f"digest:{content}:{unnamed[content]}"


def _subject(text: str) -> str:
    """Cut to fit, it must not become the subject of an intent: those end in no ellipsis of ours."""
    return text if len(text) <= subjects.MAX else f"{text[: subjects.MAX - 1]}\u2026"


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, bool | str) else str(value)


def _store(
    downstream: Downstream, entry: Entry, entry_id: str, seen: Evidence, source: str, now: datetime
) -> LedgerEntry:
    row, new = LedgerEntry.objects.get_or_create(
        downstream=downstream,
        book="api",
        entry_id=entry_id,
        defaults={
            "role": entry.role,
            "state": entry.state,
            "key": (entry.key or "")[:255],
            "subject": _subject(entry.subject or ""),
            "amount_minor": entry.amount_minor,
            "currency": (entry.currency or "")[:3],
            "booked_at": entry.booked_at,
            "source": source[:200],
            "evidence": seen,
            "first_seen_at": now,
            "last_seen_at": now,
        },
    )
    if not new:
        _see_again(row, entry, seen, now)
    return row


def _see_again(row: LedgerEntry, entry: Entry, seen: Evidence, now: datetime) -> None:
    """An entry may leave `pending`; it never comes back to it."""
    row.last_seen_at = now
    if row.state == EntryState.PENDING and entry.state != EntryState.PENDING.value:
        row.state, row.evidence = entry.state, seen
    row.save(update_fields=["state", "evidence", "last_seen_at"])


def candidates_for(intent: Intent, rows: Iterable[LedgerEntry]) -> list[Candidate]:
    """The entries as the verdict needs them: whether they are tied elsewhere, and who else could own them."""
    rows = list(rows)
    taken = {
        match.entry_id
        for match in Match.objects.filter(entry__in=rows, released_at__isnull=True).exclude(
            intent=intent, role="settles"
        )
    }
    return [
        Candidate(
            id=row.pk,
            entry_id=row.entry_id,
            role=row.role,
            state=row.state,
            key=row.key,
            subject=row.subject,
            amount_minor=row.amount_minor,
            currency=row.currency,
            booked_at=row.booked_at,
            taken=row.pk in taken,
            others=0 if row.key or row.role != EntryRole.EFFECT else _other_owners(intent, row),
        )
        for row in rows
    ]


def _other_owners(intent: Intent, row: LedgerEntry) -> int:
    """How many other unsettled intents an entry without a key could belong to."""
    return (
        Intent.objects.filter(
            downstream=intent.downstream_id,
            subject=row.subject,
            amount_minor=row.amount_minor,
            currency=row.currency,
            status__in=list(UNSETTLED),
            first_maybe_sent_at__isnull=False,
        )
        .exclude(pk=intent.pk)
        .count()
    )
