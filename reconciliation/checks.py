"""Runs one check: claim, look, act. Three steps, so that the network is never inside a transaction.

A check is claimed by a conditional update of `next_check_at`, stores whatever it saw, and acts only while the
intent still has the fence that it began with.
"""

import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
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
from django.db.models import Q
from rq.exceptions import AbandonedJobError
from rq.timeouts import BaseTimeoutException

from actions import dispatch, evidence, history, loop, policy, times, transitions, transport
from actions.canonical import canonical
from actions.connectors import registry
from actions.connectors.base import LookupFailed, Page, Target, Wanted
from actions.errors import BadDecision, StaleTransition
from actions.locking import for_change
from actions.models import Attempt, ClosedBy, Evidence, EvidenceKind, Executor, Intent, Result
from actions.statuses import Status
from reconciliation import entries, following, verdicts
from reconciliation.models import Check, ReasonCode, Verdict
from reconciliation.reviews import opening
from reconciliation.verdicts import Candidate, Facts, Judgement, Look

log = logging.getLogger(__name__)

# A claimed check that never came back is due again after its time-out and so many seconds.
_CLAIM_MARGIN_S = 30


@dataclass(frozen=True)
class Claimed:
    """A look that is ours to make, with everything that it needs and no database."""

    intent_id: UUID
    fence: int
    started_at: datetime
    connector: str
    target: Target
    wanted: Wanted
    ways: tuple[str, ...]
    by: str
    manual: bool = False


@dataclass(frozen=True)
class Looked:
    """What a look brought: the pages, and why it is not complete."""

    pages: tuple[Page, ...]
    problem: str = ""


def due(now: datetime) -> Q:
    return Q(next_check_at__lte=now, status__in=[Status.SUBMITTED, Status.UNKNOWN, Status.FAILED, Status.CONFIRMED])


def claim(*, limit: int) -> list[Claimed]:
    """Claims at most `limit` due checks, each by one conditional UPDATE, so that none is made twice at once."""
    with transaction.atomic():
        now = times.now()
        found = (
            for_change(Intent, skip_locked=True)
            .select_related("kind", "policy", "downstream")
            .filter(due(now))
            .order_by("next_check_at", "id")[:limit]
        )
        return [claimed for intent in found if (claimed := _claim_or_put_off(intent, now)) is not None]


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
    until = now + timedelta(milliseconds=2 * intent.downstream.deadline_ms, seconds=_CLAIM_MARGIN_S)
    changed = Intent.objects.filter(pk=intent.pk, fence=intent.fence, next_check_at=intent.next_check_at).update(
        next_check_at=until
    )
    return _claimed(intent, now, by=f"checker:{dispatch.worker_id()}") if changed else None


def _claimed(intent: Intent, now: datetime, *, by: str, manual: bool = False) -> Claimed:
    look_up = policy.read(intent.policy.text).look_up
    return Claimed(
        intent_id=intent.pk,
        fence=intent.fence,
        started_at=now,
        connector=intent.downstream.connector,
        target=dispatch.target_of(intent.downstream),
        wanted=dispatch.wanted_of(intent),
        ways=("key", "subject") if look_up == "both" else (look_up,),
        by=by,
        manual=manual,
    )


def look(claimed: Claimed) -> Looked:
    """Looks by key, then by subject; every page. Touches no database; runs in a thread.

    A connector that breaks saw nothing that counts: the book was unavailable to us.
    """
    limits = transport.Limits(
        connect_timeout_s=claimed.target.connect_timeout_s, deadline_s=claimed.target.deadline_s
    )
    pages: list[Page] = []
    for way in claimed.ways:
        try:
            found = list(
                registry.get(claimed.connector).look_up(
                    claimed.target,
                    claimed.wanted,
                    lambda call: transport.send(call, limits),
                    by="key" if way == "key" else "subject",
                )
            )
        except LookupFailed as failed:
            return Looked(pages=(*pages, *failed.pages), problem=f"{failed.reason}: {failed.message}")
        except Exception as bug:
            log.exception("connector %s can't look up", claimed.connector)
            return Looked(pages=tuple(pages), problem=f"connector_error: {bug!r}")
        pages += found
        if way == "key" and any(e.key == claimed.wanted.idempotency_key for page in found for e in page.entries):
            break  # the key is the intent's own: what carries it needs no second way
    return Looked(pages=tuple(pages))


def act(claimed: Claimed, looked: Looked) -> Check:
    """Stores what was seen, judges it, and does what follows, all in one transaction."""
    with transaction.atomic():
        intent = for_change(Intent).select_related("kind", "policy", "downstream", "agent").get(pk=claimed.intent_id)
        now = times.now()
        seen = _keep(intent, claimed, looked, now)
        rows = entries.store_pages(intent.downstream, zip(looked.pages, seen, strict=False), now=now)
        found = entries.candidates_for(intent, rows)
        judgement = verdicts.judge(_facts(intent), found, _how_it_looked(intent, claimed, looked))
        check = _write(intent, claimed, judgement, found, seen, looked.problem, now)
        intent.refresh_from_db(fields=["chain_length", "chain_head"])
        if intent.status in (Status.HELD, Status.RECORDED):
            # It was said not to be sent. Nothing follows, unless the book shows it under its own key.
            if judgement.by == "key" and judgement.candidates and not judgement.entry_failed:
                opening.doubt(intent, now=now, check=check)
        elif intent.settled:
            following.after_the_end(intent, check, judgement, now)
        elif intent.fence == claimed.fence:
            following.follow(intent, check, judgement, now)
        else:
            transitions.note(intent.pk, now=now, next_check_at=now)
    return check


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


def _facts(intent: Intent) -> Facts:
    return Facts(
        key=intent.idempotency_key,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        first_sent_at=intent.first_maybe_sent_at,
        external_id=intent.external_id,
    )


def _how_it_looked(intent: Intent, claimed: Claimed, looked: Looked) -> Look:
    return Look(
        complete=not looked.problem,
        started_at=claimed.started_at,
        last_possible_send=last_possible_send(intent.attempts.all(), otherwise=intent.created_at),
        lag_s=policy.read(intent.policy.text).lag_s,
    )


def last_possible_send(attempts: Iterable[Attempt], *, otherwise: datetime) -> datetime:
    """After this no attempt can have sent anything: its own answer's time, or else the end of its lease.

    A caller whose word proved nothing may be sending still, until its lease ends.
    """
    return max((_last_of(attempt) for attempt in attempts), default=otherwise)


def _last_of(attempt: Attempt) -> datetime:
    if attempt.closed_at is None or attempt.closed_by == ClosedBy.CLOCK:
        return attempt.lease_until
    if attempt.executor == Executor.CALLER and attempt.result == Result.NO_ANSWER:
        return max(attempt.closed_at, attempt.lease_until)
    return attempt.closed_at


def _write(
    intent: Intent,
    claimed: Claimed,
    judgement: Judgement,
    found: list[Candidate],
    seen: list[Evidence],
    problem: str,
    now: datetime,
) -> Check:
    grounds = {
        "by": judgement.by,
        "entry": judgement.entry,
        "candidates": list(judgement.candidates),
        "differs": list(judgement.differs),
        "entry_failed": judgement.entry_failed,
        "problem": problem.split(":", 1)[0],
    }
    check = Check(
        intent=intent,
        by=claimed.by,
        manual=claimed.manual,
        started_at=claimed.started_at,
        fence=claimed.fence,
        verdict=judgement.verdict,
        counts_as_absence=_counts(intent, claimed, judgement),
        grounds=canonical(grounds),
        evidence=history.refs(seen),
        facts_digest=verdicts.facts_digest(found),
    )
    return history.append(check, owner=Intent, pk=intent.pk, at=now)


def _counts(intent: Intent, claimed: Claimed, judgement: Judgement) -> bool:
    """Whether this absence counts: not a person's look, under the current fence, spaced from the last that did."""
    rules_ = policy.read(intent.policy.text)
    if judgement.verdict is not Verdict.ABSENT or claimed.manual or not rules_.absence_conclusive:
        return False
    if claimed.fence != intent.fence:
        return False
    last = following.counted_absences(intent).order_by("-position").first()
    return last is None or claimed.started_at >= last.started_at + timedelta(seconds=rules_.absence_spacing_s)


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

    Raises BadDecision when the downstream can't be looked into, or nothing was ever sent.
    """
    intent = Intent.objects.select_related("kind", "policy", "downstream").get(pk=intent_id)
    if not policy.can_look_up(policy.read(intent.policy.text)):
        raise BadDecision("This downstream has no look-up; only outside evidence can tell.")
    if intent.first_maybe_sent_at is None:
        raise BadDecision("Nothing was sent yet, so there is nothing to look for.")
    claimed = _claimed(intent, times.now(), by=f"person:{person.pk}", manual=True)
    return act(claimed, look(claimed))
