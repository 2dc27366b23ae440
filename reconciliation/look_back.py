"""The reverse look: a downstream's books are looked through for what nobody asked about.

Claim, look, store: three steps, so that the network is never inside a transaction. It settles nothing: what it shows
is stored, and intents whose key an entry bears are looked up as always. What no intent explains becomes a case
(`orphans`).
"""

import logging
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from uuid import UUID

from django.db import IntegrityError, InterfaceError, OperationalError, close_old_connections, transaction
from django.db.models import F, Q, QuerySet
from rq.exceptions import AbandonedJobError
from rq.timeouts import BaseTimeoutException

from actions import breakers, dispatch, evidence, loop, times, transport
from actions.connectors import registry
from actions.connectors.base import Entry, LooksBack, LookupFailed, Page, Target
from actions.locking import for_change
from actions.models import Downstream, Evidence, EvidenceKind, Intent, Line
from actions.transport import Call, Reply
from reconciliation import checks, entries, progress
from reconciliation.checks import Looked
from reconciliation.models import LedgerEntry, LookBack, Match
from reconciliation.progress import Way

log = logging.getLogger(__name__)

# What is booked late, or with an older time, is still seen: each look goes back so far behind the one before, and
# the lag of the book.
_OVERLAP = timedelta(hours=1)
# A look may take so long; whoever claimed it and never came back has lost it a little later.
_LONGEST = timedelta(minutes=1)
# One that follows a look that was cut off has more to read, and more time.
_CATCHING_UP = timedelta(minutes=2)
_MARGIN = timedelta(minutes=1)
# While there is more to read it goes on this soon, and leaves the worker to others in between.
_SOON = timedelta(seconds=10)
# It is all held until it is stored: so many characters of pages, and a look is cut off.
_MOST_HELD = 50_000_000
# So many times the interval, and an hour, a look may be behind before people are told.
_LATE_TIMES, _LATE = 3, timedelta(hours=1)
# So many entries are stored in one transaction.
_AT_ONCE = 1_000


@dataclass(frozen=True)
class Claimed:
    """One downstream's books, ours to look through; with everything that it needs and no database."""

    downstream_id: int
    connector: str
    target: Target
    since: datetime
    started_at: datetime
    until: datetime
    way: Way
    longest: timedelta = _LONGEST


def catching_up(now: datetime) -> list[LookBack]:
    """Books of which there is more to read than one look does, and that are read on, look by look."""
    rows = LookBack.objects.filter(downstream__look_back_s__isnull=False).select_related("downstream")
    return [row for row in rows.order_by("downstream__title", "pk") if progress.is_catching_up(row, now)]


def behind(now: datetime) -> list[LookBack]:
    """Books that are to be looked through, were not for much longer than they should be, and are not catching up."""
    rows = LookBack.objects.filter(downstream__look_back_s__isnull=False, through__lt=now - _LATE)
    return [
        row
        for row in rows.select_related("downstream").order_by("downstream__title", "pk")
        if row.through is not None
        and not progress.is_catching_up(row, now)
        and row.through < now - _LATE - _LATE_TIMES * timedelta(seconds=row.downstream.look_back_s or 0)
    ]


def anything_due(now: datetime) -> bool:
    """Whether workers would find books to look through."""
    return _due(now).exists()


def _due(now: datetime) -> QuerySet[Downstream]:
    never_yet = Q(look_back=None)
    found = Downstream.objects.filter(never_yet | Q(look_back__next_at__lte=now), look_back_s__isnull=False)
    return found.exclude(pk__in=breakers.waiting(Line.LOOKING, now=now))


def claim(*, limit: int) -> list[Claimed]:
    """Claims at most `limit` downstreams that are due, each by one conditional UPDATE."""
    now = times.now()
    due = list(_due(now).order_by(F("look_back__next_at").asc(nulls_first=True), "pk")[:limit])
    claimed = [_claim_one(downstream, now) for downstream in due]
    return [one for one in claimed if one is not None]


def _claim_one(downstream: Downstream, now: datetime) -> Claimed | None:
    with transaction.atomic():
        # From its first claim on it is known where to begin: looks that fail must not let that move along.
        row, _ = LookBack.objects.get_or_create(downstream=downstream, defaults={"next_at": now, "through": now})
        through = row.through or now
        # The first look begins a little before now: what was booked before Landed came is nobody's case.
        since = through - timedelta(seconds=downstream.lag_s) - _OVERLAP
        way = progress.take_up(row, progress.question_of(downstream, since), now=now)
        longest = _CATCHING_UP if way.cursor or row.problem.startswith("too_many_pages") else _LONGEST
        until = now + longest + _MARGIN
        if row.next_at > now or not LookBack.objects.filter(pk=row.pk, next_at=row.next_at).update(
            next_at=until, through=through, **asdict(way)
        ):
            return None
        if downstream.pk in breakers.open_ones(Line.LOOKING):
            a_look = timedelta(milliseconds=2 * downstream.deadline_ms)
            breakers.took_probe(downstream.pk, Line.LOOKING, now=now, at_least=a_look)
    return Claimed(
        downstream_id=downstream.pk,
        connector=downstream.connector,
        target=dispatch.target_of(downstream),
        since=since,
        started_at=now,
        until=until,
        way=way,
        longest=longest,
    )


def look(claimed: Claimed) -> Looked:
    """Every page since then, or what is behind those that were read before. Touches no database; runs in a thread. A
    connector that breaks saw nothing that counts."""
    limits = transport.Limits(
        connect_timeout_s=claimed.target.connect_timeout_s, deadline_s=claimed.target.deadline_s
    )
    stop_at = time.monotonic() + claimed.longest.total_seconds()

    def fetch(call: Call) -> Reply:
        if time.monotonic() > stop_at:
            raise LookupFailed(
                "too_many_pages", f"After {claimed.longest.total_seconds():.0f} s there was still more."
            )
        return transport.send(call, limits)

    pages: list[Page] = []
    try:
        connector = registry.get(claimed.connector)
        if not isinstance(connector, LooksBack):
            return Looked(pages=(), problem=f"not_offered: The connector {claimed.connector} doesn't look back.")
        # Whoever gives no cursors is never asked with one, and need not know of them.
        behind = {"cursor": claimed.way.cursor} if claimed.way.cursor else {}
        held = 0
        for page in connector.look_back(claimed.target, fetch, since=claimed.since, **behind):
            pages.append(page)
            held += len(page.body)
            if page.after and page.after == claimed.way.mark:
                raise LookupFailed("repeated_cursor", "The pages go in a circle.")
            if page.after and held > _MOST_HELD:
                raise LookupFailed("too_many_pages", f"After {held:,} characters there was still more.")
    except LookupFailed as failed:
        return Looked(pages=tuple(pages), problem=f"{failed.reason}: {failed.message}")
    except Exception as bug:
        log.exception("connector %s can't look back", claimed.connector)
        return Looked(pages=tuple(pages), problem=f"connector_error: {bug!r}")
    return Looked(pages=tuple(pages))


def save(claimed: Claimed, looked: Looked) -> None:
    """Stores what was seen, in pieces, and with each how far that is; in the end, whether it was the end."""
    downstream = Downstream.objects.get(pk=claimed.downstream_id)
    way = claimed.way
    for pages in _pieces(looked.pages):
        way = progress.past(way, pages)
        _ask_for_looks(downstream, _store(downstream, pages, claimed, way))
    with transaction.atomic():
        row = for_change(LookBack).get(downstream=downstream)
        now = times.now()
        mine = row.next_at == claimed.until
        if not looked.problem:
            _end(row, claimed, looked, now, mine=mine)
        elif mine:
            row.problem = progress.stop_short(row, looked.problem, begun=claimed.way, pages=len(looked.pages))[:300]
        if mine:
            row.next_at = now + _pause(downstream, row)
        row.save()
        cut_by_us = looked.pages and looked.problem.startswith("too_many_pages")
        checks.tell_breaker(downstream, replace(looked, problem="") if cut_by_us else looked, now)


def _end(row: LookBack, claimed: Claimed, looked: Looked, now: datetime, *, mine: bool) -> None:
    """Its way came to the end of the books, as they were when it began."""
    row.through = max(row.through or claimed.way.began_at, claimed.way.began_at)
    row.finished_at = now
    unread = claimed.way.unread + sum(page.unread for page in looked.pages)
    row.problem = f"unreadable_entry: {unread} could not be read and were left out" if unread else ""
    if mine:
        progress.leave(row)


def _pause(downstream: Downstream, row: LookBack) -> timedelta:
    usual = timedelta(seconds=downstream.look_back_s or 0)
    return min(_SOON, usual) if row.problem.startswith(progress.CATCHING_UP) else usual


def _pieces(pages: Sequence[Page]) -> Iterable[list[Page]]:
    """So many pages at a time that no transaction gets long. Entries without an id are counted over all of them."""
    if any(entry.entry_id is None for page in pages for entry in page.entries):
        yield list(pages)
        return
    piece: list[Page] = []
    for page in pages:
        piece.append(page)
        if sum(len(one.entries) for one in piece) >= _AT_ONCE:
            yield piece
            piece = []
    if piece:
        yield piece


def _store(downstream: Downstream, pages: list[Page], claimed: Claimed, way: Way) -> set[str]:
    """The keys of what is new. Only pages that say something new are kept as evidence: the same pages are seen again
    and again. How far it is is written with them: after a crash nothing is left out, or read twice."""
    with transaction.atomic():
        now = times.now()
        # Not locked: rows are locked below, all at once and in one order.
        known = _known(downstream, pages)
        fresh = [page for page in pages if any(_is_news(entry, known) for entry in page.entries)]
        old = [entry.entry_id for page in pages if page not in fresh for entry in page.entries if entry.entry_id]
        kept = [(page, _keep(page, claimed, now)) for page in fresh]
        if fresh:
            entries.store_pages(downstream, kept, now=now, as_of=claimed.started_at)
        progress.write(downstream, way, until=claimed.until)
    with transaction.atomic():
        # By itself: locks of two lots would be taken in no order.
        seen_again = [row.pk for row in entries.lock(downstream, old)] if old else []
        older = LedgerEntry.objects.filter(pk__in=seen_again, last_seen_at__lt=claimed.started_at)
        older.update(last_seen_at=claimed.started_at)
    return {entry.key for page in fresh for entry in page.entries if entry.key and _is_news(entry, known)}


def _known(downstream: Downstream, pages: Iterable[Page]) -> dict[str, LedgerEntry]:
    ids = [entry.entry_id for page in pages for entry in page.entries if entry.entry_id]
    return {row.entry_id: row for row in LedgerEntry.objects.filter(downstream=downstream, entry_id__in=ids)}


def _is_news(entry: Entry, known: dict[str, LedgerEntry]) -> bool:
    row = known.get(entry.entry_id) if entry.entry_id else None
    return row is None or row.state != entry.state or row.amount_minor != entry.amount_minor


def _keep(page: Page, claimed: Claimed, now: datetime) -> Evidence:
    return evidence.store(
        intent_id=None,
        kind=EvidenceKind.PAGE,
        source=page.url,
        content=page.body,
        now=now,
        secrets=[claimed.target.secret],
    )


def _ask_for_looks(downstream: Downstream, keys: set[str]) -> None:
    """Intents whose key is new in the book are looked up soon, unless it is what settled them already."""
    concerned = Intent.objects.filter(
        downstream=downstream, idempotency_key__in=keys, status__in=checks.LOOKED_AT, lease_until=None
    )
    for pk in list(concerned.values_list("pk", flat=True)):
        _ask_for_look(pk)


def _ask_for_look(intent_id: UUID) -> None:
    with transaction.atomic():
        intent = for_change(Intent).get(pk=intent_id)
        now = times.now()
        if intent.lease_until is None and not (intent.settled and _is_what_settled_it(intent)):
            checks.ask_for_look(intent_id, at=now, now=now)


def _is_what_settled_it(intent: Intent) -> bool:
    """Whether all that the book shows under its key is the entry that confirmed it, or was judged in that state."""
    shown = LedgerEntry.objects.filter(downstream=intent.downstream_id, key=intent.idempotency_key)
    ties = Match.objects.filter(intent=intent, released_at=None).values_list("entry_id", "entry_state")
    tied = set(ties)
    return all(
        (row.pk, row.state) in tied or (intent.status == "confirmed" and row.entry_id == intent.external_id)
        for row in shown
    )


def run(*, budget_s: float, slots: int = 2) -> int:
    """Looks through the books that are due until none are. Returns how many."""
    return loop.run(
        claim=lambda free: claim(limit=free), work=look, save=_save_or_leave, slots=slots, budget_s=budget_s
    )


def _save_or_leave(claimed: Claimed, looked: Looked) -> None:
    """What can't be stored is looked at again; nothing is lost but time."""
    try:
        save(claimed, looked)
    except (IntegrityError, OperationalError, InterfaceError) as lost:
        log.info("a look back into %s was not stored: %s", claimed.target.name, lost)
        close_old_connections()
    except (BaseTimeoutException, AbandonedJobError):
        raise
    except Exception as bug:
        log.exception("what a look back into %s saw can't be stored", claimed.target.name)
        save(claimed, Looked(pages=(), problem=f"not_storable: {type(bug).__name__}"))
