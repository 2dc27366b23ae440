"""Runs one check: claim, look, act. Three steps, so that the network is never inside a transaction.

A check is claimed by a conditional update of `next_check_at`, stores whatever it saw, and acts only while the
intent still has the fence that it began with.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User
from django.db import (
    DatabaseError,
    IntegrityError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    transaction,
)
from django.db.models import Count, Q
from rq.exceptions import AbandonedJobError
from rq.timeouts import BaseTimeoutException

from actions import breakers, dispatch, evidence, loop, places, policy, subjects, times, transitions, transport
from actions.connectors import registry
from actions.connectors.base import LookupFailed, Page, Target, Wanted
from actions.errors import BadDecision, StaleTransition
from actions.locking import for_change
from actions.models import Downstream, Evidence, EvidenceKind, Intent, Line, LookUp
from actions.statuses import Status
from actions.transport import Call, Reply
from reconciliation import entries, following, seeing
from reconciliation.models import Check, ReasonCode
from reconciliation.reviews import opening
from reconciliation.seeing import Sight
from reconciliation.seeing import write as _write

log = logging.getLogger(__name__)

# One look takes no more than this: so many entries, characters of pages, seconds. What it saw is stored under the
# intent's lock, and nobody is helped by more; what is left out may hold ours, so the look proves nothing.
_MOST_ENTRIES, _MOST_TEXT, _LONGEST_S = 10_000, 20_000_000, 120

# A claimed check that never came back is due again after its time-out and so many seconds.
_CLAIM_MARGIN_S = 30

# Settled ones as well: what failed by absence is looked up again, and webhooks may speak of any of them.
LOOKED_AT = (Status.SUBMITTED, Status.UNKNOWN, Status.FAILED, Status.CONFIRMED)

last_possible_send = seeing.last_possible_send


@dataclass(frozen=True)
class Claimed:
    """A look that is ours to make, with everything that it needs and no database. `until`: for so long it is ours."""

    intent_id: UUID
    fence: int
    started_at: datetime
    connector: str
    target: Target
    wanted: Wanted
    ways: tuple[str, ...]
    by: str
    manual: bool = False
    until: datetime | None = None
    # Whether to look by subject although the key was found: reversals often carry none.
    all_ways: bool = False


@dataclass(frozen=True)
class Looked:
    """What a look brought: the pages, and why it is not complete. `anew`: the first page of its newest way."""

    pages: tuple[Page, ...]
    problem: str = ""
    anew: int | None = None


def due(now: datetime) -> Q:
    """What our workers look at. The books that a service looks into are offered to it: `by_service`."""
    return Q(next_check_at__lte=now, status__in=LOOKED_AT) & ~Q(downstream__look_up=LookUp.SERVICE)


def claim(*, limit: int) -> list[Claimed]:
    """Claims at most `limit` due checks, each by one conditional UPDATE, so that none is made twice at once.

    Never more at a time than a downstream takes: one, as a probe, while its books can't be read.
    """
    with transaction.atomic():
        now = times.now()
        free, broken = places.free(
            Intent.objects.filter(due(now)).values("downstream_id"),
            Line.LOOKING,
            most=lambda row: row.max_look_ups,
            busy=lambda rows: _looking(rows, now),
            now=now,
        )
        found = (
            for_change(Intent, skip_locked=True)
            .select_related("kind", "policy", "downstream")
            .filter(due(now), pk__in=_ready(now, free, limit))
            .order_by("next_check_at", "id")
        )
        claimed = []
        for intent in found:
            if (one := _claim_or_put_off(intent, now)) is not None:
                claimed.append(one)
                if intent.downstream_id in broken:
                    a_look = timedelta(milliseconds=2 * intent.downstream.deadline_ms)
                    breakers.took_probe(intent.downstream_id, Line.LOOKING, now=now, at_least=a_look)
    return claimed


def anything_due(now: datetime) -> bool:
    """Whether workers would find something to look at."""
    return Intent.objects.filter(due(now)).exclude(downstream__in=breakers.waiting(Line.LOOKING, now=now)).exists()


def _looking(rows: list[Downstream], now: datetime) -> Mapping[int, int]:
    """How many looks are under way at each."""
    found = Intent.objects.filter(looking_until__gt=now, downstream__in=rows)
    return dict(found.values_list("downstream_id").annotate(Count("pk")))


def _ready(now: datetime, free: Mapping[int, int], limit: int) -> list[UUID]:
    """At most `limit` due looks, the oldest first, asked for each downstream by itself: a busy one keeps no other
    from its turn."""
    ready: list[Any] = []  # (due at, id)
    for pk, room in free.items():
        mine = Intent.objects.filter(due(now), downstream_id=pk).order_by("next_check_at", "id")
        ready += mine.values_list("next_check_at", "pk")[: min(room, limit)]
    return [pk for _, pk in sorted(ready)[:limit]]


def _claim_or_put_off(intent: Intent, now: datetime) -> Claimed | None:
    """A bug over one intent keeps no other from being looked up; it counts as a look that brought nothing."""
    try:
        return _claim_one(intent, now)
    except DatabaseError:
        raise
    except Exception:
        log.exception("intent %s can't be looked up", intent.pk)
        rules_ = policy.read(intent.policy.text)
        waited = (now - (intent.first_maybe_sent_at or intent.status_since)).total_seconds()
        if not intent.settled and waited >= rules_.review_after_s:
            opening.open_for_outcome(intent, ReasonCode.STILL_UNKNOWN, now=now)
        following.look_again(intent, rules_, now)
        return None


def _claim_one(intent: Intent, now: datetime) -> Claimed | None:
    until = take(intent, now)
    if until is None:
        return None
    transitions.note(intent.pk, now=now, looking_until=until)
    return _claimed(intent, now, by=f"checker:{dispatch.worker_id()}", until=until)


def take(intent: Intent, now: datetime) -> datetime | None:
    """Takes a due look, by one conditional UPDATE: until when it is the taker's. None: somebody was faster."""
    until = now + timedelta(milliseconds=2 * intent.downstream.deadline_ms, seconds=_CLAIM_MARGIN_S)
    still = Intent.objects.filter(pk=intent.pk, fence=intent.fence, next_check_at=intent.next_check_at)
    return until if still.update(next_check_at=until) else None


def _ways(intent: Intent) -> tuple[str, ...]:
    look_up = policy.read(intent.policy.text).look_up
    if look_up in (LookUp.SERVICE, LookUp.NONE):
        # When it was recorded nobody here could look; now that a connector does, it looks as it can.
        look_up = intent.downstream.look_up
    return ("key", "subject") if look_up == LookUp.BOTH else (look_up,)


def _claimed(
    intent: Intent, now: datetime, *, by: str, manual: bool = False, until: datetime | None = None
) -> Claimed:
    return Claimed(
        intent_id=intent.pk,
        fence=intent.fence,
        started_at=now,
        connector=intent.downstream.connector,
        target=dispatch.target_of(intent.downstream),
        wanted=dispatch.wanted_of(intent),
        ways=_ways(intent),
        by=by,
        manual=manual,
        until=until,
        all_ways=intent.status == Status.CONFIRMED,
    )


def look(claimed: Claimed) -> Looked:
    """Looks by key, then by subject; every page. Touches no database; runs in a thread.

    A connector that breaks saw nothing that counts: the book was unavailable to us.
    """
    limits = transport.Limits(
        connect_timeout_s=claimed.target.connect_timeout_s, deadline_s=claimed.target.deadline_s
    )
    stop_at = time.monotonic() + _LONGEST_S

    def fetch(call: Call) -> Reply:
        if time.monotonic() > stop_at:
            raise LookupFailed("too_many_pages", f"After {_LONGEST_S} s there was still more.")
        return transport.send(call, limits)

    pages: list[Page] = []
    anew = 0
    for way in claimed.ways:
        found: list[Page] = []
        try:
            for page in registry.get(claimed.connector).look_up(
                claimed.target, claimed.wanted, fetch, by="key" if way == "key" else "subject"
            ):
                found.append(page)
                _refuse_more_than_is_kept(found)
        except LookupFailed as failed:
            seen = (*pages, *found, *_unread(claimed.target, failed))
            return Looked(pages=seen, problem=f"{failed.reason}: {failed.message}", anew=len(pages))
        except Exception as bug:
            log.exception("connector %s can't look up", claimed.connector)
            return Looked(pages=(*pages, *found), problem=f"connector_error: {bug!r}", anew=len(pages))
        anew = len(pages)
        pages += found
        if (
            way == "key"
            and not claimed.all_ways
            and any(e.key == claimed.wanted.idempotency_key for page in found for e in page.entries)
        ):
            break  # the key is the intent's own: what carries it needs no second way
    return Looked(pages=tuple(pages), anew=anew)


def _refuse_more_than_is_kept(pages: Sequence[Page]) -> None:
    shown, text = sum(len(page.entries) for page in pages), sum(len(page.body) for page in pages)
    if shown > _MOST_ENTRIES or text > _MOST_TEXT:
        raise LookupFailed("too_many_pages", f"After {shown:,} entries ({text:,} characters) no more was read.")


def _unread(target: Target, failed: LookupFailed) -> tuple[Page, ...]:
    """What could not be read is evidence as well: it shows why nothing follows."""
    return (Page(target.base_url, failed.http_status or 0, (), failed.body),) if failed.body else ()


def act(claimed: Claimed, looked: Looked) -> Check:
    """Stores what was seen, judges it, and does what follows, all in one transaction."""
    with transaction.atomic():
        # What is seen may put it in question, which concerns its family: that lock comes first, everywhere.
        subjects.lock_family_of(claimed.intent_id)
        intent = for_change(Intent).select_related("kind", "policy", "downstream", "agent").get(pk=claimed.intent_id)
        now = times.now()
        asked_for = intent.next_check_at
        sight = Sight(
            by=claimed.by,
            started_at=claimed.started_at,
            fence=claimed.fence,
            problem=looked.problem,
            manual=claimed.manual,
            # Whoever asked for another look meanwhile knows more than this one can have seen.
            may_count=asked_for == claimed.until,
        )
        seen = _keep(intent, claimed, looked, now)
        pages = zip(looked.pages, seen, strict=False)
        rows = entries.store_pages(intent.downstream, pages, now=now, as_of=claimed.started_at, anew=looked.anew)
        judged = seeing.judge(intent, sight, rows)
        check = _write(intent, sight, judged, seen, now)
        seeing.follow(intent, sight, check, judged, now)
        if claimed.until is not None and asked_for is not None and asked_for < claimed.until:
            ask_for_look(intent.pk, at=asked_for, now=now)
        if not claimed.manual:
            # Unless somebody else looks by now, because this took too long.
            Intent.objects.filter(pk=intent.pk, looking_until=claimed.until).update(looking_until=None)
            tell_breaker(intent.downstream, looked, now)
    return check


# What came to nothing for a reason that lies with us, or with this one question.
_NOT_THE_BOOKS = frozenset(
    {
        "connector_error",
        "not_offered",
        "bad_query",
        "bad_question",
        "not_storable",
        "repeated_cursor",
        "too_many_pages",
    }
)


def tell_breaker(downstream: Downstream, looked: Looked, now: datetime) -> None:
    problem = looked.problem.split(":", 1)[0]
    if problem not in _NOT_THE_BOOKS:
        (breakers.unanswered if problem else breakers.answered)(downstream, Line.LOOKING, now=now)


def ask_for_look(intent_id: UUID, *, at: datetime, now: datetime) -> None:
    """Has it looked at by then; a look that is planned for earlier stays. The caller holds the intent's lock."""
    found = Intent.objects.filter(pk=intent_id, status__in=LOOKED_AT)
    if found.exclude(next_check_at__lte=at).exists():
        transitions.note(intent_id, now=now, next_check_at=at)


def _keep(intent: Intent, claimed: Claimed, looked: Looked, now: datetime) -> list[Evidence]:
    """One piece of evidence per page, and one that says why there is no more."""
    texts = [(page.url, page.body) for page in looked.pages]
    if looked.problem:
        texts.append((claimed.target.base_url, looked.problem))
    return [
        evidence.store(
            intent_id=intent.pk,
            kind=EvidenceKind.PAGE,
            source=source,
            content=text,
            now=now,
            secrets=[claimed.target.secret],
        )
        for source, text in texts
    ]


def run(*, budget_s: float, slots: int = 8) -> int:
    """Checks what is due until nothing is; stops claiming after `budget_s` seconds. Returns how many."""
    return loop.run(
        claim=lambda free: claim(limit=free), work=look, save=_act_or_leave, slots=slots, budget_s=budget_s
    )


def _act_or_leave(claimed: Claimed, looked: Looked) -> None:
    """Somebody else was faster (settled it, took the entry): nothing is lost, the claim runs out and it is looked
    at again."""
    try:
        act(claimed, looked)
    except (StaleTransition, IntegrityError, OperationalError, InterfaceError) as lost:
        log.info("check of %s lost a race: %s", claimed.intent_id, lost)
        close_old_connections()
    except (BaseTimeoutException, AbandonedJobError):
        raise  # from outside: the claim runs out and it is looked at again
    except Exception as bug:
        # What was seen can't be stored or judged, and would not be the next time. In silence it would be looked
        # up for ever; as a look that brought nothing it leads to a person.
        log.exception("what a check of %s saw can't be stored", claimed.intent_id)
        act(claimed, Looked(pages=(), problem=f"not_storable: {type(bug).__name__}"))


def check_by_person(intent_id: UUID, *, person: User) -> Check:
    """A look that a person asks for, now. Network: call it outside any transaction. It never counts as an absence.

    Raises BadDecision when we can't look into the downstream's books ourselves, or nothing was ever sent. A service
    that can is asked to.
    """
    intent = Intent.objects.select_related("kind", "policy", "downstream").get(pk=intent_id)
    if not policy.can_look_up(policy.read(intent.policy.text)):
        raise BadDecision("This downstream has no look-up; only outside evidence can tell.")
    if not policy.can_look_now(policy.read(intent.policy.text)):
        _ask_the_service(intent_id)
        raise BadDecision("A service looks into these books with code of its own. It is asked to look now.")
    if intent.first_maybe_sent_at is None:
        raise BadDecision("Nothing was sent yet, so there is nothing to look for.")
    claimed = _claimed(intent, times.now(), by=f"person:{person.pk}", manual=True)
    return act(claimed, look(claimed))


def _ask_the_service(intent_id: UUID) -> None:
    with transaction.atomic():
        for_change(Intent).get(pk=intent_id)
        now = times.now()
        ask_for_look(intent_id, at=now, now=now)
