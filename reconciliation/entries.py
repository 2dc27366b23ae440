"""Stores what a book shows: one row per entry, whoever saw it and however often."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from typing import Any

from actions import subjects
from actions.canonical import canonical, digest
from actions.connectors.base import Entry, Page
from actions.models import Downstream, Evidence, Intent
from actions.statuses import UNSETTLED
from reconciliation.models import EntryRole, EntryState, LedgerEntry, Match, MatchRole
from reconciliation.verdicts import Candidate

_BATCH = 500


def store_pages(
    downstream: Downstream, pages: Iterable[tuple[Page, Evidence]], *, now: datetime
) -> list[LedgerEntry]:
    """Stores the entries of one look's pages, in the order seen, each once.

    A handful of statements however many entries there are: the intent's lock is held meanwhile.
    """
    unnamed: Counter[str] = Counter()
    looked = {_id_of(entry, unnamed): (entry, page.url, seen) for page, seen in pages for entry in page.entries}
    known = _known(downstream, looked)
    new = [
        LedgerEntry(
            downstream=downstream,
            entry_id=entry_id,
            state=entry.state,
            source=source[:200],
            evidence=seen,
            first_seen_at=now,
            last_seen_at=now,
            **_said(entry),
        )
        for entry_id, (entry, source, seen) in looked.items()
        if entry_id not in known
    ]
    # Somebody else's look may be storing the same: whoever is first is right, and both read what is there then.
    LedgerEntry.objects.bulk_create(new, ignore_conflicts=True, batch_size=_BATCH)
    LedgerEntry.objects.filter(pk__in=[row.pk for row in known.values()]).update(last_seen_at=now)
    for entry_id, row in known.items():
        entry, _, seen = looked[entry_id]
        _see_again(row, entry.state, _said(entry), seen)
    known |= _known(downstream, [row.entry_id for row in new])
    return [known[entry_id] for entry_id in looked]


def _known(downstream: Downstream, ids: Iterable[str]) -> dict[str, LedgerEntry]:
    rows = LedgerEntry.objects.filter(downstream=downstream, book="api", entry_id__in=list(ids))
    return {row.entry_id: row for row in rows}


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


def _said(entry: Entry) -> dict[str, Any]:
    """What the book says of an entry, beside its state."""
    return {
        "role": entry.role,
        "key": (entry.key or "")[:255],
        "subject": _subject(entry.subject or ""),
        "amount_minor": entry.amount_minor,
        "currency": (entry.currency or "")[:3],
        "booked_at": entry.booked_at,
    }


def _see_again(row: LedgerEntry, state: str, said: dict[str, Any], seen: Evidence) -> None:
    """What is pending may still change, and leaves that state once; a slower look never brings it back.

    The row keeps what the book said when it became final. `row` itself shows what it says now, so that the verdict
    is about that.
    """
    now_says: dict[str, Any] = {name: value for name, value in said.items() if getattr(row, name) != value}
    if state != row.state or (now_says and row.state == EntryState.PENDING):
        same = LedgerEntry.objects.filter(pk=row.pk)
        if state == EntryState.PENDING.value:
            same.filter(state=EntryState.PENDING).update(**said)
        else:
            same.filter(state=EntryState.PENDING).update(**said)
            same.exclude(state=state).update(state=state, evidence=seen)
        row.refresh_from_db(fields=["state"])
    for name, value in now_says.items():
        setattr(row, name, value)


def candidates_for(intent: Intent, rows: Iterable[LedgerEntry]) -> list[Candidate]:
    """The entries as the verdict needs them: whether they are tied elsewhere, and who else could own them."""
    rows = list(rows)
    ties = list(Match.objects.filter(entry__in=rows, released_at__isnull=True))
    judged = {
        (tie.entry_id, tie.entry_state)
        for tie in ties
        if tie.intent_id == intent.pk and tie.role != MatchRole.SETTLES
    }
    # Tied to another intent, or another one's by the id that its own answer gave it.
    taken = {tie.entry_id for tie in ties if tie.intent_id != intent.pk} | _answered(intent, rows)
    rows = [row for row in rows if (row.pk, row.state) not in judged]
    owners = _owners_besides(intent, rows)
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
            known_before=intent.first_maybe_sent_at is not None and row.first_seen_at < intent.first_maybe_sent_at,
            others=0 if row.key else owners[(row.subject, row.amount_minor, row.currency)],
        )
        for row in rows
    ]


def _answered(intent: Intent, rows: list[LedgerEntry]) -> set[int]:
    """The entries whose id is the external id of another intent: it is settled, or accepted, as that one."""
    others = Intent.objects.filter(downstream=intent.downstream_id, external_id__in=[row.entry_id for row in rows])
    ids = set(others.exclude(pk=intent.pk).exclude(external_id="").values_list("external_id", flat=True))
    return {row.pk for row in rows if row.entry_id in ids}


def _owners_besides(intent: Intent, rows: list[LedgerEntry]) -> Counter[tuple[str, int | None, str]]:
    """How many other unsettled intents an entry without a key could belong to, by subject, amount and currency."""
    keyless = {row.subject for row in rows if not row.key and row.role == EntryRole.EFFECT}
    others = Intent.objects.filter(
        downstream=intent.downstream_id,
        subject__in=keyless,
        status__in=sorted(UNSETTLED),
        first_maybe_sent_at__isnull=False,
    ).exclude(pk=intent.pk)
    return Counter(others.values_list("subject", "amount_minor", "currency"))
