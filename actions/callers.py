"""Intents that the caller carries out: claiming, and reporting what came of it.

The claim's token is minted by the caller and kept here as a digest. Whoever shows it may send, again and again
while the attempt is open, so a lost response loses nothing; nobody else may, so a second process can't send.
"""

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from actions import evidence, outcomes, times, transitions
from actions.canonical import digest
from actions.errors import MayHaveHappened, NotApproved, NotExecutedByCaller, NotFound, TooLate
from actions.locking import for_change
from actions.models import Attempt, ClosedBy, EvidenceKind, Executor, Intent, Result
from actions.outcomes import Outcome
from actions.reasons import Reason
from actions.statuses import Actor, Status


def claim(intent_id: UUID, *, claim_token: str, actor_id: str, lease_s: int | None = None) -> Attempt:
    """The open attempt that this token may send, claimed now or before.

    Raises MayHaveHappened when another token claimed it or it is past sending, NotApproved while it is held,
    TooLate when it was withdrawn, NotExecutedByCaller when Landed sends it itself.
    """
    with transaction.atomic():
        intent = for_change(Intent).select_related("downstream").get(pk=intent_id)
        if intent.executor != Executor.CALLER:
            raise NotExecutedByCaller(intent=intent)
        now = times.now()
        open_ = intent.attempts.filter(closed_at__isnull=True).first()
        if open_ is not None and open_.claim_token_digest == digest(claim_token) and open_.lease_until > now:
            return open_  # past its lease nobody may send, whether or not a clock has noticed
        if intent.status == Status.HELD:
            raise NotApproved(intent=intent)
        if intent.status == Status.CANCELLED:
            raise TooLate("It was withdrawn; it may not be sent any more.", intent=intent)
        if intent.status != Status.RECORDED:
            raise MayHaveHappened(intent=intent)
        if intent.send_before is not None and intent.send_before <= now:
            raise MayHaveHappened("Its time to be sent is over.", intent=intent)
        down = intent.downstream
        lease = now + (
            timedelta(seconds=lease_s) if lease_s else timedelta(milliseconds=down.deadline_ms + down.lease_margin_ms)
        )
        transitions.apply(
            intent_id,
            expected=Status.RECORDED,
            to=Status.SUBMITTED,
            actor=Actor.CALLER,
            actor_id=actor_id,
            reason=Reason.CLAIMED,
            now=now,
            fence=intent.fence,
            new_fence=intent.fence + 1,
            lease_until=lease,
            first_maybe_sent_at=intent.first_maybe_sent_at or now,
        )
        return Attempt.objects.create(
            intent=intent,
            number=intent.attempts.count() + 1,
            fence=intent.fence + 1,
            executor=Executor.CALLER,
            claim_token_digest=digest(claim_token),
            claimed_at=now,
            lease_until=lease,
        )


def report(
    intent_id: UUID,
    *,
    outcome: Outcome,
    content: dict[str, Any],
    actor_id: str,
    number: int | None = None,
) -> Intent:
    """Takes a trusted caller's report about its attempt (`number`; None: the newest one).

    Raises NotExecutedByCaller for an intent that Landed sends, and changes nothing; NotFound without an attempt.
    """
    with transaction.atomic():
        intent = for_change(Intent).get(pk=intent_id)
        if intent.executor != Executor.CALLER:
            raise NotExecutedByCaller(intent=intent)
        attempts = intent.attempts.order_by("-number")
        attempt = (attempts.filter(number=number) if number else attempts).first()
        if attempt is None:
            raise NotFound("This intent has no such attempt: claim it first.")
        now = times.now()
        seen = evidence.store(
            intent_id=intent_id,
            attempt=attempt,
            kind=EvidenceKind.REPORT,
            source=actor_id,
            content=content,
            now=now,
        )
        return outcomes.apply_outcome(
            attempt.pk,
            outcome,
            actor=Actor.CALLER,
            actor_id=actor_id,
            closed_by=ClosedBy.REPORT,
            evidence=[seen],
            now=now,
        )


def reported(result: Result, *, external_id: str = "", reason: str = "reported") -> Outcome:
    return Outcome(result=result, reason=reason, external_id=external_id)
