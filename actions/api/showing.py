"""An intent as agents read it. One function writes it, whatever asked for it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.db.models import Q, QuerySet
from django.urls import reverse

from actions import callers, guidance, policy, reasons, replays
from actions.api.answers import time_text
from actions.errors import NotFound
from actions.guidance import Situation
from actions.models import Agent, Attempt, Executor, Intent
from actions.policy import Policy
from actions.reasons import Reason
from actions.statuses import Status

APPROVAL, OUTCOME = "approval", "outcome"
# A connector's word for "ours did nothing, for another request did it already".
_ELSEWHERE: Final = "effect_exists_elsewhere"
# And for "somebody contests the payment itself".
_FOR_GOOD: Final = "payment_disputed"


@dataclass(frozen=True)
class OpenReview:
    """As much of an open review as an agent may know."""

    purpose: str
    due_at: datetime


@dataclass(frozen=True)
class Around:
    """The rows beside an intent that its JSON needs."""

    attempts: tuple[Attempt, ...] = ()
    review: OpenReview | None = None


NOTHING_YET: Final = Around()


def may_see(viewer: Agent, owner: Agent) -> bool:
    """An agent sees its own intents and those of its group."""
    return viewer.pk == owner.pk or (viewer.group != "" and viewer.group == owner.group)


def visible_to(viewer: Agent) -> "QuerySet[Intent]":
    """The intents that `viewer` may read, with everything that `intent_json` needs of other tables' single rows."""
    mine = Q(agent__group=viewer.group) if viewer.group else Q(agent=viewer)
    return Intent.objects.select_related("agent", "kind", "policy", "downstream", "look_alike_of__agent").filter(mine)


def visible(viewer: Agent, intent_id: UUID) -> Intent:
    """Raises NotFound, whether it does not exist or is not theirs to see."""
    intent = visible_to(viewer).filter(pk=intent_id).first()
    if intent is None:
        # Whether it exists is nobody's business who may not see it.
        raise NotFound("There is no such intent, or it is not yours to see.")
    return intent


def url_of(intent: Intent) -> str:
    return reverse("api:intent", args=[intent.pk])


def look_around(intents: Iterable[Intent]) -> dict[UUID, Around]:
    """Attempts and open reviews of all of them, in two queries however many there are."""
    ids = [intent.pk for intent in intents]
    attempts: dict[UUID, list[Attempt]] = defaultdict(list)
    for attempt in Attempt.objects.filter(intent__in=ids).order_by("number"):
        attempts[attempt.intent_id].append(attempt)
    # By the reverse relation: the table belongs to `reconciliation`, which this app must not import.
    reviews = Intent._meta.get_field("reviews").related_model._default_manager  # type: ignore[union-attr]  # it is a model
    open_ = {
        intent_id: OpenReview(APPROVAL if purpose == APPROVAL else OUTCOME, due_at)
        for intent_id, purpose, due_at in reviews.filter(intent__in=ids, closed_at__isnull=True).values_list(
            "intent_id", "purpose", "due_at"
        )
    }
    return {pk: Around(tuple(attempts[pk]), open_.get(pk)) for pk in ids}


def situation(
    intent: Intent,
    *,
    now: datetime,
    viewer: Agent | None = None,
    claim_token: str | None = None,
    around: Around | None = None,
) -> Situation:
    """What guidance needs to know. `around` is looked up when it is not given."""
    beside = look_around([intent])[intent.pk] if around is None else around
    last = beside.attempts[-1] if beside.attempts else None
    review = beside.review
    by_caller = intent.executor == Executor.CALLER
    return Situation(
        status=Status(intent.status),
        reason=intent.status_reason,
        now=now,
        by_caller=by_caller,
        disputed=intent.disputed,
        review_open=review is not None,
        review_due_at=review.due_at if review else intent.approve_before,
        own=viewer is None or viewer.pk == intent.agent_id,
        may_send=by_caller and last is not None and _may_send(intent, last, review, claim_token, now),
        stopped=by_caller and callers.stop_of(intent) is not None,
        attempt_open=last is not None and last.closed_at is None,
        effect_elsewhere=any(_ELSEWHERE in (one.reason, one.late_reason) for one in beside.attempts),
        refused_for_good=any(_FOR_GOOD in (one.reason, one.late_reason) for one in beside.attempts)
        or _was_stopped(intent),
        lease_until=intent.lease_until,
        send_before=intent.send_before,
        next_attempt_at=intent.next_attempt_at,
        next_check_at=intent.next_check_at,
    )


def _was_stopped(intent: Intent) -> bool:
    """Expired unsent while a person's stop kept it back: asking again is not what the person wants."""
    expired = intent.status == Status.CANCELLED and intent.status_reason in (Reason.EXPIRED, Reason.APPROVAL_EXPIRED)
    return expired and "stopped" in intent.hold_reasons.split(",")


def when_to_ask(at: Situation) -> datetime:
    """For whoever was refused because of this intent: always a time, as it blocks."""
    found = guidance.ask_again_at(at)
    # It was settled between the refusal and this look: now is the time.
    return at.now if found is None else found


def _may_send(
    intent: Intent, attempt: Attempt, review: OpenReview | None, claim_token: str | None, now: datetime
) -> bool:
    # While a person finds out whether it happened, nobody does it a second time.
    return review is None and callers.may_send(intent, attempt, claim_token=claim_token, now=now)


def intent_json(
    intent: Intent,
    *,
    now: datetime,
    viewer: Agent | None = None,
    claim_token: str | None = None,
    around: Around | None = None,
) -> dict[str, Any]:
    """The intent as `viewer` (None: its own agent) reads it at `now`.

    Costs two queries when `around` is not given, and more when `kind`, `policy` or `look_alike_of` are not loaded.
    """
    beside = look_around([intent])[intent.pk] if around is None else around
    at = situation(intent, now=now, viewer=viewer, claim_token=claim_token, around=beside)
    rules = policy.read(intent.policy.text)
    last = beside.attempts[-1] if beside.attempts else None
    return {
        "id": str(intent.pk),
        "kind": intent.kind.name,
        "subject": intent.subject,
        "amount": intent.amount,
        "currency": intent.currency or None,
        "params": intent.params_data,
        "context": intent.context_data,
        "executor": intent.executor,
        "status": intent.status,
        "status_reason": reasons.public(intent.status_reason),
        "settled": intent.settled,
        "disputed": intent.disputed,
        "idempotency_key": intent.idempotency_key,
        "external_id": intent.external_id or None,
        "settled_amount": intent.settled_amount,
        "settled_by": intent.settled_by or None,
        "attempt_count": len(beside.attempts),
        "attempt": None if last is None else _attempt_json(last, may_send=at.may_send),
        "replay_safe_until": time_text(_replay_safe_until(intent, rules)),
        "send_before": time_text(intent.send_before),
        "next_step": guidance.next_step(at).value,
        "ask_again_at": time_text(guidance.ask_again_at(at)),
        "may_propose_again": guidance.may_propose_again(at),
        "message": guidance.message(at),
        "customer_message": guidance.customer_message(at, rules.customer_texts),
        "review": None if beside.review is None else _review_json(beside.review),
        "look_alike_of": _look_alike_of(intent, viewer),
        "sequence": intent.version,
        "created_at": time_text(intent.created_at),
        "updated_at": time_text(intent.updated_at),
        "settled_at": time_text(intent.settled_at),
        "erased_at": time_text(intent.erased_at),
    }


def _attempt_json(attempt: Attempt, *, may_send: bool) -> dict[str, Any]:
    return {"number": attempt.number, "lease_until": time_text(attempt.lease_until), "may_send": may_send}


def _replay_safe_until(intent: Intent, rules: Policy) -> datetime | None:
    down = intent.downstream
    return replays.safe_until(rules, intent.first_maybe_sent_at, dedupes=down.dedupes, window_s=down.dedupe_window_s)


def _review_json(review: OpenReview) -> dict[str, Any]:
    # What it is for and no more: reasons leak limits and suspicions.
    return {"open": True, "for": review.purpose, "due_at": time_text(review.due_at)}


def _look_alike_of(intent: Intent, viewer: Agent | None) -> str | None:
    other = intent.look_alike_of
    return str(other.pk) if other and may_see(viewer or intent.agent, other.agent) else None
