"""Who may send an intent that the caller carries out, and until when.

The claim's token is minted by the caller and kept here as a digest. Whoever shows it may send, again and again
while the attempt is open, so a lost response loses nothing; nobody else may, so a second process can't send.
"""

from dataclasses import dataclass
from datetime import datetime
from hmac import compare_digest
from uuid import UUID

from django.db import transaction

from actions import history, holding, leases, policy, stops, subjects, times, transitions
from actions.attempts import open_attempt
from actions.canonical import digest
from actions.errors import (
    AgentPaused,
    DownstreamPaused,
    KindPaused,
    LandedError,
    LeaseOver,
    MayHaveHappened,
    NotApproved,
    NotExecutedByCaller,
    NotFound,
    PastSendBefore,
    TooLate,
)
from actions.locking import for_change
from actions.models import Attempt, Executor, Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status


@dataclass(frozen=True)
class Claim:
    """An open attempt; whether its holder may send now; whether this very call claimed it."""

    attempt: Attempt
    may_send: bool
    is_new: bool


def claim(intent_id: UUID, *, claim_token: str, actor_id: str, lease_s: int | None = None) -> Attempt:
    """The open attempt that this token may send now. Raises what `take` raises, and what has come between since."""
    found = take(intent_id, claim_token=claim_token, actor_id=actor_id, lease_s=lease_s)
    if not found.may_send:
        raise _not_now(found.attempt.intent) or LeaseOver(intent=found.attempt.intent)
    return found.attempt


def take(intent_id: UUID, *, claim_token: str, actor_id: str, lease_s: int | None = None) -> Claim:
    """The open attempt of this token, claimed now or before. `lease_s`: seconds; None: the downstream's own.

    Raises MayHaveHappened when another token claimed it or it is past sending (PastSendBefore: unsent, and too
    old), NotApproved while it is held, or from now on is, TooLate when it was withdrawn, NotExecutedByCaller when
    Landed sends it itself, AgentPaused, KindPaused and DownstreamPaused while sending is paused.
    """
    with transaction.atomic():
        # The family before the row, as dispatch does: a dispute holds the family while it waits for its rows.
        found = Intent.objects.filter(pk=intent_id).values_list("kind_id", "family").first()
        if found is not None:
            subjects.lock_family(*found)
        intent = locked(intent_id)
        now = times.now()
        open_ = intent.attempts.filter(closed_at__isnull=True).first()
        if open_ is not None and _runs(intent, open_, now) and holds(open_, claim_token):
            open_.intent = intent
            return Claim(open_, may_send=may_send(intent, open_, claim_token=claim_token, now=now), is_new=False)
        if (refusal := _refusal(intent, now)) is not None:
            raise refusal
        why = _held_by(intent)
        if why is None:
            attempt = _submit(intent, claim_token, actor_id, lease_s, now)
        else:
            holding.hold(intent, actor=Actor.CHECKER, actor_id="checker", now=now, why=why)
            intent.refresh_from_db()
    # Both outside, so that they speak of what is committed.
    if why is None:
        # A stop that was placed in between has not found it recorded any more: it is found here.
        return Claim(attempt, may_send=not stops.of_intent(intent), is_new=True)
    in_question = "Something on its subject is in question: a person looks first."
    raise NotApproved(in_question if why == "contradiction" else "", intent=intent)


def locked(intent_id: UUID) -> Intent:
    """The intent, locked, with whatever may stop it. Raises NotExecutedByCaller for one that Landed sends."""
    intent = for_change(Intent).select_related("agent", "kind", "policy", "downstream").get(pk=intent_id)
    if intent.executor != Executor.CALLER:
        raise NotExecutedByCaller(intent=intent)
    return intent


def _refusal(intent: Intent, now: datetime) -> LandedError | None:
    """Why nobody can claim it now."""
    if intent.status == Status.HELD:
        return NotApproved(intent=intent)
    if intent.status == Status.CANCELLED:
        return TooLate("It was withdrawn; it may not be sent any more.", intent=intent)
    if intent.status != Status.RECORDED:
        return MayHaveHappened(intent=intent)
    if intent.send_before is not None and intent.send_before <= now:
        return PastSendBefore(intent=intent)
    return stop_of(intent)


def stop_of(intent: Intent) -> LandedError | None:
    """The pause that keeps everything like this intent from being sent at the moment."""
    if intent.agent.paused:
        return AgentPaused("This agent is paused; nothing may be sent.")
    if intent.kind.paused:
        return KindPaused("This kind is paused; nothing of it may be sent at the moment.")
    if intent.downstream.paused:
        return DownstreamPaused()
    return None


def _not_now(intent: Intent) -> LandedError | None:
    """What keeps an open attempt from being sent: a pause, or a stop, of which the caller hears nothing more."""
    if (pause := stop_of(intent)) is not None:
        return pause
    if stops.of_intent(intent):
        return NotApproved("It may not be sent at the moment: a person looks first.", intent=intent)
    return None


def _held_by(intent: Intent) -> holding.Why | None:
    """Why a person has to look before anybody may claim it."""
    if stops.of_intent(intent):
        return "stopped"
    return "contradiction" if _in_question(intent) else None


def _in_question(intent: Intent) -> bool:
    """Whether something related is disputed, or holds the guard, and no person waived that for this intent; or
    whether it is not what was recorded any more."""
    if not history.payload_fits(intent):
        return True
    if intent.guard_waived:
        return False
    others = subjects.blocking(intent.kind_id, intent.subject, besides=intent.pk)
    return intent.guard_key is None or any(other.disputed for other in others)


def _submit(intent: Intent, claim_token: str, actor_id: str, lease_s: int | None, now: datetime) -> Attempt:
    first = intent.first_maybe_sent_at or now
    lease = _lease(intent, lease_s, first, now)
    intent = transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.SUBMITTED,
        actor=Actor.CALLER,
        actor_id=actor_id,
        reason=Reason.CLAIMED,
        now=now,
        fence=intent.fence,
        new_fence=intent.fence + 1,
        lease_until=lease,
        first_maybe_sent_at=first,
    )
    return open_attempt(
        intent,
        executor=Executor.CALLER,
        fence=intent.fence,
        claim_token_digest=digest(claim_token),
        lease_until=lease,
        now=now,
    )


def _lease(intent: Intent, lease_s: int | None, first_maybe_sent_at: datetime | None, now: datetime) -> datetime:
    window = policy.replay_safe_until(policy.read(intent.policy.text), first_maybe_sent_at)
    return leases.lease_until(
        now=now,
        lease_s=lease_s,
        deadline_ms=intent.downstream.deadline_ms,
        margin_ms=intent.downstream.lease_margin_ms,
        ends=(intent.send_before, window),
    )


def holds(attempt: Attempt, claim_token: str | None) -> bool:
    """Whether this token claimed the attempt."""
    if not claim_token or not attempt.claim_token_digest:
        return False
    return compare_digest(digest(claim_token), attempt.claim_token_digest)


def _runs(intent: Intent, attempt: Attempt, now: datetime) -> bool:
    """Whether the attempt is the intent's current one, open, and its lease has time left.

    Once the lease is over the clock may call it unknown at any moment, and a look into the books that begins then
    must not be overtaken by a sending.
    """
    current = intent.status == Status.SUBMITTED and attempt.fence == intent.fence
    return current and attempt.closed_at is None and now < attempt.lease_until


def may_send(intent: Intent, attempt: Attempt, *, claim_token: str | None, now: datetime) -> bool:
    """Whether whoever shows this token may send now."""
    if not holds(attempt, claim_token) or not _runs(intent, attempt, now):
        return False
    return not intent.disputed and _not_now(intent) is None


def renew(intent_id: UUID, *, number: int, claim_token: str, lease_s: int | None = None) -> Attempt:
    """More time for the open attempt of this token: never less than it has, never past what `leases` allows.

    Raises NotFound, NotExecutedByCaller, MayHaveHappened for another token, LeaseOver, NotApproved while a person has
    to look first, and the pauses of `take`.
    """
    with transaction.atomic():
        intent = locked(intent_id)
        now = times.now()
        attempt = intent.attempts.filter(number=number).first()
        if attempt is None:
            raise NotFound("This intent has no such attempt.")
        if not holds(attempt, claim_token):
            raise MayHaveHappened("Another token claimed this attempt.", intent=intent)
        if not _runs(intent, attempt, now):
            raise LeaseOver(intent=intent)
        if (refusal := _not_now(intent)) is not None:
            raise refusal
        until = max(attempt.lease_until, _lease(intent, lease_s, intent.first_maybe_sent_at, now))
        running = Attempt.objects.filter(pk=attempt.pk, closed_at__isnull=True, lease_until__gt=now)
        both = running.update(lease_until=until) and transitions.note(
            intent.pk, fence=attempt.fence, now=now, lease_until=until
        )
        if not both:
            raise LeaseOver(intent=intent)
        attempt.lease_until = until
        return attempt
