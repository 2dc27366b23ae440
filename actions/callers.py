"""Intents that the caller carries out: `claim`, `take` and `renew` come from `actions.claims`; here are its reports.

A report speaks for the attempt that it names. Where the kind doesn't trust its callers, what they say is kept as
evidence and leads to a look into the books, or to a person; it settles nothing.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from actions import evidence, history, hooks, outcomes, subjects, times, transitions
from actions.canonical import canonical
from actions.claims import Claim, claim, holds, locked, may_send, renew, stop_of, take
from actions.errors import ForeignReport, NotFound
from actions.models import Attempt, ClosedBy, Evidence, EvidenceKind, Intent, Observed, Result
from actions.outcomes import Outcome
from actions.reasons import Reason
from actions.redaction import redact_values
from actions.statuses import Actor, Status

__all__ = ["Claim", "claim", "may_send", "renew", "report", "reported", "stop_of", "take"]


def report(
    intent_id: UUID,
    *,
    outcome: Outcome,
    content: dict[str, Any],
    actor_id: str,
    number: int | None = None,
    claim_token: str | None = None,
    trusted: bool = True,
) -> Intent:
    """Takes a caller's report about its attempt (`number`; None: the newest one) and returns the intent after it.

    `claim_token` None: the application itself, which needs none. The same report again changes nothing.

    Raises NotExecutedByCaller for an intent that Landed sends, and keeps nothing; NotFound without an attempt and
    ForeignReport for another token's one: those are kept as evidence.
    """
    with transaction.atomic():
        subjects.lock_family_of(intent_id)
        intent = locked(intent_id)
        attempts = intent.attempts.order_by("-number")
        attempt = (attempts if number is None else attempts.filter(number=number)).first()
        now = times.now()
        if attempt is None:
            seen, is_new = _keep(intent, None, content, actor_id, now)
            _observe(intent, seen, actor_id, now, is_new=is_new)
        elif claim_token is not None and not holds(attempt, claim_token):
            seen, is_new = _keep(intent, attempt, content | {"claimed_by": "another token"}, actor_id, now)
            _observe(intent, seen, actor_id, now, is_new=is_new)
            if is_new and outcome.result is Result.CONFIRMED:
                # Whoever may not send says that it did: a reason to look.
                outcomes.compare(intent, attempt, outcome, now)
        else:
            return _take_report(intent, attempt, outcome, content, actor_id, trusted=trusted, now=now)
    if attempt is None:
        raise NotFound("This intent has no such attempt: claim it first.")
    raise ForeignReport(intent=outcomes.for_reading(intent_id))


def _keep(
    intent: Intent, attempt: Attempt | None, content: dict[str, Any], source: str, now: datetime
) -> tuple[Evidence, bool]:
    """The evidence of this report, and whether it says anything new."""
    text = canonical(redact_values(content))
    said = Evidence.objects.filter(intent=intent, attempt=attempt, kind=EvidenceKind.REPORT, source=source, text=text)
    if (found := said.first()) is not None:
        return found, False
    stored = evidence.store(
        intent_id=intent.pk, attempt=attempt, kind=EvidenceKind.REPORT, source=source, content=content, now=now
    )
    return stored, True


def _observe(intent: Intent, seen: Evidence, actor_id: str, now: datetime, *, is_new: bool = True) -> None:
    """What moves nothing is in the history all the same, with its evidence."""
    if is_new:
        history.observe(intent.pk, Observed.AGAIN, by=actor_id, evidence=[seen], at=now)


def _take_report(
    intent: Intent,
    attempt: Attempt,
    said: Outcome,
    content: dict[str, Any],
    actor_id: str,
    *,
    trusted: bool,
    now: datetime,
) -> Intent:
    seen, is_new = _keep(intent, attempt, content, actor_id, now)
    if not is_new:
        return outcomes.for_reading(intent.pk)
    if trusted or attempt.closed_at is None:
        outcomes.apply_outcome(
            attempt.pk,
            said if trusted else _doubtful(said),
            actor=Actor.CALLER,
            actor_id=actor_id,
            closed_by=ClosedBy.REPORT,
            evidence=[seen],
            now=now,
        )
    else:
        _observe(intent, seen, actor_id, now)
    found = outcomes.for_reading(intent.pk)
    if not trusted:
        outcomes.compare(found, attempt, said, now)
    _look_again(found, attempt, said, actor_id, seen, trusted=trusted, now=now)
    return outcomes.for_reading(intent.pk)


def _doubtful(said: Outcome) -> Outcome:
    """What an untrusted report proves of its attempt: nothing. What it says is in the evidence."""
    unknown = said.result is Result.NO_ANSWER
    return Outcome(result=Result.NO_ANSWER, reason=said.reason if unknown else Reason.REPORT_UNVERIFIED)


def _look_again(
    intent: Intent, attempt: Attempt, said: Outcome, actor_id: str, seen: Evidence, *, trusted: bool, now: datetime
) -> None:
    """What a new report may ask for beside the move of its own attempt."""
    if intent.status == Status.SUBMITTED and attempt.fence != intent.fence and said.result is Result.CONFIRMED:
        # An earlier attempt is said to have happened after all: the current one may not be sent on top of it.
        transitions.apply(
            intent.pk,
            expected=Status.SUBMITTED,
            to=Status.UNKNOWN,
            actor=Actor.CALLER,
            actor_id=actor_id,
            reason=Reason.EARLIER_ATTEMPT_OPEN,
            evidence=[seen],
            now=now,
        )
        outcomes.look_soon(intent, now)
    elif intent.status == Status.UNKNOWN and not trusted:
        outcomes.look_soon(intent, now)
    elif intent.status == Status.CONFIRMED and said.result is Result.CONFIRMED:
        _compare_ids(intent, attempt, said)


def _compare_ids(intent: Intent, attempt: Attempt, said: Outcome) -> None:
    """Confirmed under another id than before: there may be two effects."""
    if said.external_id and intent.external_id and said.external_id != intent.external_id:
        hooks.tell_contradiction(intent, attempt)


def reported(result: Result, *, external_id: str = "", reason: str = "reported") -> Outcome:
    return Outcome(result=result, reason=reason, external_id=external_id)
