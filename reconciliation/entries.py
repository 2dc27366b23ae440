"""Stores what is told of a book: one row per entry, whoever told it and however often."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import BooleanField, F, Func, Q, QuerySet

from actions import policy, subjects
from actions.canonical import canonical, digest
from actions.connectors.base import Entry, Page
from actions.locking import for_change
from actions.models import Downstream, Evidence, Intent
from actions.statuses import UNSETTLED, Status
from reconciliation.models import EntryRole, EntryState, LedgerEntry, Match, MatchRole
from reconciliation.verdicts import CLOCK_SKEW, Candidate

_BATCH = 500
# So long after the book's lag an intent has had its time to explain what the book shows.
EXPLAINED_WITHIN = timedelta(minutes=10)
# Of one intent's entries so many are judged together; nobody's order has more that could be its own.
_MOST_ABOUT = 500
# The condition of the index intent_external_id, word for word: SQLite uses a partial index only then.
HAS_EXTERNAL_ID = Func(F("external_id"), template="NOT (%(expressions)s = '')", output_field=BooleanField())


def moved(entry: LedgerEntry) -> tuple[int | None, str]:
    """What an entry really moved, in minor units: as it was booked, where that differs from what was asked for."""
    if entry.settled_amount_minor is None:
        return entry.amount_minor, entry.currency
    return entry.settled_amount_minor, entry.settled_currency or entry.currency


@dataclass(frozen=True)
class Telling:
    """Entries from one source, and the evidence that they were told. `anew`: from here on the same is told once more,
    by another way, so that entries without ids are counted from one again."""

    entries: Sequence[Entry]
    source: str
    evidence: Evidence
    anew: bool = False


def store_pages(
    downstream: Downstream,
    pages: Iterable[tuple[Page, Evidence]],
    *,
    now: datetime,
    as_of: datetime | None = None,
    anew: int | None = None,
) -> list[LedgerEntry]:
    """Stores the entries of one look's pages, in the order seen, each once. `as_of`: when the look began; `anew`: the
    index of the page with which its second way begins."""
    tellings = [
        Telling(page.entries, page.url, seen, anew=number == anew) for number, (page, seen) in enumerate(pages)
    ]
    return store(downstream, tellings, now=now, as_of=as_of or now)


def store(
    downstream: Downstream, tellings: Iterable[Telling], *, now: datetime, as_of: datetime
) -> list[LedgerEntry]:
    """Stores what was told, in its order, each entry once. `as_of`: how old the news is, by who tells it.

    A handful of statements however many entries there are: the intent's lock is held meanwhile. A row's
    `last_seen_at` is the newest `as_of` that told of it. Call it inside a transaction.
    """
    told = _by_id(tellings)
    known = set(_rows(downstream, told).values_list("entry_id", flat=True))
    # In one order, whoever stores, and locked only once all are there: so nobody waits in a circle.
    new = [
        LedgerEntry(
            downstream=downstream,
            entry_id=entry_id,
            state=entry.state,
            source=telling.source[:200],
            evidence=telling.evidence,
            first_seen_at=now,
            last_seen_at=as_of,
            explain_at=now + timedelta(seconds=downstream.lag_s) + EXPLAINED_WITHIN,
            **_said(entry),
        )
        for entry_id, (entry, telling) in sorted(told.items())
        if entry_id not in known
    ]
    LedgerEntry.objects.bulk_create(new, ignore_conflicts=True, batch_size=_BATCH)
    rows = {row.entry_id: row for row in lock(downstream, told)}
    for entry_id, row in rows.items():
        entry, telling = told[entry_id]
        # Not only what was known before: somebody else's look may have stored the same in between, in another state.
        if row.evidence_id != telling.evidence.pk:
            _see_again(row, entry.state, _said(entry), telling.evidence, as_of)
    older = LedgerEntry.objects.filter(pk__in=[row.pk for row in rows.values()], last_seen_at__lt=as_of)
    older.update(last_seen_at=as_of)
    return [rows[entry_id] for entry_id in told]


def _by_id(tellings: Iterable[Telling]) -> dict[str, tuple[Entry, Telling]]:
    found: dict[str, tuple[Entry, Telling]] = {}
    unnamed: Counter[str] = Counter()
    for telling in tellings:
        if telling.anew:
            unnamed.clear()
        found |= {_id_of(entry, unnamed): (entry, telling) for entry in telling.entries}
    return found


def lock(downstream: Downstream, ids: Iterable[str]) -> list[LedgerEntry]:
    """The rows of these entries, locked until the transaction ends, in the one order in which everybody locks."""
    found = for_change(LedgerEntry).filter(downstream=downstream, book="api", entry_id__in=list(ids))
    return list(found.order_by("pk"))


def _rows(downstream: Downstream, ids: Iterable[str]) -> QuerySet[LedgerEntry]:
    return LedgerEntry.objects.filter(downstream=downstream, book="api", entry_id__in=list(ids)).order_by()


def differing(entries: Iterable[Entry], rows: Sequence[LedgerEntry]) -> list[int]:
    """The rows that say something else than these entries: news that was taken for older than what is known, or
    what changed of an entry that had ended. That one was pending before it ended is neither."""
    told = {entry.entry_id[:255]: entry for entry in entries if entry.entry_id}
    stored = LedgerEntry.objects.filter(pk__in=[row.pk for row in rows]).order_by("pk")
    return [row.pk for row in stored if row.entry_id in told and _differs(told[row.entry_id], row)]


def _differs(entry: Entry, row: LedgerEntry) -> bool:
    if row.state != EntryState.PENDING and entry.state == EntryState.PENDING.value:
        return False
    amount = (row.amount_minor, row.currency) if entry.amount_minor is None else (entry.amount_minor, entry.currency)
    return (entry.state, entry.role, *amount) != (row.state, row.role, row.amount_minor, row.currency)


def answered_by(downstream_id: int, ids: Iterable[str]) -> QuerySet[Intent]:
    """The intents to which the downstream named one of these ids as theirs."""
    # As a sum, so that SQLite doesn't take an index on the downstream, with all its history, for the better one.
    theirs = Intent.objects.annotate(whose=F("downstream_id") + 0)
    return theirs.filter(HAS_EXTERNAL_ID, external_id__in=list(ids), whose=downstream_id)


def ours(intent: Intent, told: Sequence[Entry]) -> list[Entry]:
    """Of what somebody says about one intent: what can be about it, and is no word about another one's entry.

    What bears its own key or id; or has no key, and its subject or none.
    """
    ids = {entry.entry_id[:255] for entry in told if entry.entry_id}
    elsewhere = set(
        answered_by(intent.downstream_id, ids).exclude(pk=intent.pk).values_list("external_id", flat=True)
    )
    own_key, own_subject = ("", intent.idempotency_key), ("", intent.subject)
    for row in _rows(intent.downstream, ids):
        own = row.key == intent.idempotency_key or (intent.external_id and row.entry_id == intent.external_id)
        if not own and (row.key or row.subject not in own_subject):
            elsewhere.add(row.entry_id)
    return [
        entry
        for entry in told
        if (entry.entry_id or "")[:255] not in elsewhere
        and (
            entry.key == intent.idempotency_key
            or (intent.external_id and entry.entry_id == intent.external_id)
            or ((entry.key or "") in own_key and (entry.subject or "") in own_subject)
        )
    ]


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


def _see_again(row: LedgerEntry, state: str, said: dict[str, Any], seen: Evidence, as_of: datetime) -> None:
    """What is pending may still change, and leaves that state once; a slower look never brings it back. Of what has
    ended, older news than what is known says nothing: webhooks come late and in any order.

    The row keeps what the book said when it became final. `row` itself shows what it says now, so that the verdict
    is about that.
    """
    if as_of < row.last_seen_at and (row.state != EntryState.PENDING or state == EntryState.PENDING.value):
        return
    now_says: dict[str, Any] = {name: value for name, value in said.items() if getattr(row, name) != value}
    if state != row.state or (now_says and row.state == EntryState.PENDING):
        same = LedgerEntry.objects.filter(pk=row.pk)
        if state == EntryState.PENDING.value:
            same.filter(state=EntryState.PENDING).update(**said)
        else:
            same.filter(state=EntryState.PENDING).update(**said)
            # Conditional: somebody else may have stored newer news since this row was read.
            fresh = Q(state=EntryState.PENDING) | Q(last_seen_at__lte=as_of)
            # In another state it is another matter: whether it is explained is looked at again.
            same.filter(fresh).exclude(state=state).update(state=state, evidence=seen, explain_at=as_of)
        row.refresh_from_db(fields=["state"])
    for name, value in now_says.items():
        setattr(row, name, value)


def about(intent: Intent) -> list[LedgerEntry]:
    """What is on record that could be this intent: under its key or its external id, or about its subject and
    without a key."""
    own = Q(key=intent.idempotency_key)
    if intent.external_id:
        own |= Q(entry_id=intent.external_id)
    rows = LedgerEntry.objects.filter(own | Q(subject=intent.subject, key=""), downstream=intent.downstream_id)
    return list(rows.filter(book="api").order_by("pk")[:_MOST_ABOUT])


def is_known_to_exist(intent: Intent) -> bool:
    """Whether somebody told of an effect under the intent's own key, or its own id, that was not called off since.

    However often a look doesn't show it, that is no absence.
    """
    own = Q(key=intent.idempotency_key)
    if intent.external_id:
        own |= Q(entry_id=intent.external_id)
    rows = LedgerEntry.objects.filter(own, downstream=intent.downstream_id, book="api", role=EntryRole.EFFECT)
    found = rows.exclude(state=EntryState.FAILED)[:_MOST_ABOUT]
    # Not those that a person has judged to be somebody else's, or that settle another one.
    return any(not candidate.taken for candidate in candidates_for(intent, found))


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
            others=owners[row.pk],
        )
        for row in rows
    ]


def _answered(intent: Intent, rows: list[LedgerEntry]) -> set[int]:
    """The entries whose id is the external id of another intent: it is settled, or accepted, as that one."""
    others = answered_by(intent.downstream_id, [row.entry_id for row in rows]).exclude(pk=intent.pk)
    ids = set(others.values_list("external_id", flat=True))
    return {row.pk for row in rows if row.entry_id in ids}


def _owners_besides(intent: Intent, rows: list[LedgerEntry]) -> Counter[int]:
    """How many others each entry without a key could belong to: unsettled ones, and confirmed ones that were under
    way when it was booked. A service that books one sending twice shows the second entry to whoever comes next."""
    keyless = [row for row in rows if not row.key and row.role == EntryRole.EFFECT]
    others = Intent.objects.filter(
        downstream=intent.downstream_id,
        subject__in={row.subject for row in keyless},
        status__in=sorted(UNSETTLED),
        first_maybe_sent_at__isnull=False,
    ).exclude(pk=intent.pk)
    open_ones = Counter(others.values_list("subject", "amount_minor", "currency"))
    found = Counter({row.pk: open_ones[row.subject, row.amount_minor, row.currency] for row in keyless})
    ours = [row for row in keyless if _looks_like(row, intent)]
    for begin, end in _under_way(intent) if ours else ():
        found.update(row.pk for row in ours if row.booked_at is None or begin <= row.booked_at <= end)
    return found


def _looks_like(row: LedgerEntry, intent: Intent) -> bool:
    money = (row.amount_minor, row.currency)
    return row.subject == intent.subject and money == (intent.amount_minor, intent.currency)


def _under_way(intent: Intent) -> list[tuple[datetime, datetime]]:
    """When entries of confirmed intents that look just like this one may have been booked."""
    alike = Intent.objects.filter(
        downstream=intent.downstream_id,
        family=intent.family,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        status=Status.CONFIRMED,
        first_maybe_sent_at__isnull=False,
    ).exclude(pk=intent.pk)
    slack = timedelta(seconds=policy.read(intent.policy.text).lag_s) + CLOCK_SKEW
    times = alike.values_list("first_maybe_sent_at", "settled_at")
    return [(sent - CLOCK_SKEW, settled + slack) for sent, settled in times if sent and settled]
