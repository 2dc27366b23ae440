"""Opens reviews, adds to them, and ends them when evidence does. Call everything here inside a transaction that
holds the intent's lock."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from django.db.models import F

from actions import events, evidence, history, holding, subjects, transitions
from actions.locking import for_change
from actions.models import EventType, Evidence, Intent, Observed
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import Check, Choice, ClosedHow, Purpose, ReasonCode, Review, ReviewReason, Verdict
from reconciliation.reviews import deadlines, grounds, returning, stakes, voiding


def open_review(intent: Intent) -> Review | None:
    """The intent's open review, locked, or None."""
    return for_change(Review).filter(intent=intent, closed_at__isnull=True).first()


def open_for_approval(intent: Intent, reasons: Iterable[ReasonCode], *, now: datetime) -> Review:
    """A case for an intent that is held: may it be sent? Due when its approval expires, at the latest."""
    review = _open_or_get(intent, Purpose.APPROVAL, now)
    review.due_at = deadlines.before_expiry(intent, review.due_at)
    _add(review, reasons, now)
    _say(review, None, grounds.for_approval(intent, [r.code for r in review.reasons.all()]))
    return review


def open_for_outcome(
    intent: Intent,
    reason: ReasonCode,
    *,
    now: datetime,
    check: Check | None = None,
    recommendation: Choice | None = None,
) -> Review:
    """A case for an intent that may have been sent: did it happen? Opened on a submitted one, it becomes unknown."""
    if intent.status == Status.SUBMITTED:
        transitions.apply(
            intent.pk,
            expected=Status.SUBMITTED,
            to=Status.UNKNOWN,
            actor=Actor.CHECKER,
            actor_id=check.by if check else "checker",
            reason=Reason.IN_REVIEW,
            now=now,
            fence=intent.fence,
        )
        intent.refresh_from_db(fields=["status", "version"])
    if intent.next_attempt_at is not None:
        # A person has it now: no machine sends its key again behind their back.
        transitions.note(intent.pk, now=now, next_attempt_at=None)
        intent.next_attempt_at = None
    review = _open_or_get(intent, Purpose.OUTCOME, now)
    if reason is not ReasonCode.STILL_UNKNOWN:
        # More is known than that nothing can be found out: no outage explains it any more.
        review.incident = None
    _see(review, check, now)
    _add(review, [reason], now)
    if recommendation and recommendation != review.recommendation:
        returning.bring_back(review, why=returning.NEW_FACTS, by="checker", now=now)
    _say(review, recommendation, grounds.for_outcome(intent, check))
    return review


def renew(intent: Intent, *, check: Check, now: datetime) -> None:
    """A look that settles nothing: an open case shows what it saw."""
    if (review := open_review(intent)) is not None and review.purpose == Purpose.OUTCOME:
        _see(review, check, now)
        _say(review, None, grounds.for_outcome(intent, check))


def dispute(intent: Intent, *, now: datetime, check: Check | None = None) -> Review:
    """New evidence contradicts a settled intent: it is disputed, blocks its subject again where the guard is
    free, and a person looks."""
    seen = evidence.named_in(check.evidence) if check else []
    call_in_question(intent, by=check.by if check else "checker", seen=seen, now=now)
    review = _open_or_get(intent, Purpose.OUTCOME, now)
    _see(review, check, now)
    _add(review, [ReasonCode.CONTRADICTION], now)
    _say(review, None, grounds.for_contradiction(intent, check))
    return review


def call_in_question(intent: Intent, *, by: str, seen: Sequence[Evidence], now: datetime) -> None:
    """Marks a settled intent as disputed: its subject is blocked again, and what is recorded on it is held."""
    subjects.lock_family(intent.kind_id, intent.family)
    columns: dict[str, Any] = {"disputed": True}
    key = subjects.guard_key(intent.kind_id, intent.subject)
    if not Intent.objects.filter(guard_key=key).exists():
        columns["guard_key"] = key
    transitions.note(intent.pk, now=now, **columns)
    if not intent.disputed:
        history.observe(intent.pk, Observed.DISPUTED, by=by, evidence=seen, at=now)
        events.put(intent, EventType.DISPUTED, at=now, status=intent.status)
    intent.disputed = True
    hold_the_unsent(intent, now)


def doubt(intent: Intent, *, now: datetime, check: Check | None = None) -> Review:
    """It was said not to be sent, and now something says that it was: it is unknown, nobody sends it, and a person
    looks."""
    first = intent.attempts.order_by("number").first()
    transitions.apply(
        intent.pk,
        expected=(Status.RECORDED, Status.HELD),
        to=Status.UNKNOWN,
        actor=Actor.CHECKER,
        actor_id=check.by if check else "checker",
        reason=Reason.CONTRADICTED,
        now=now,
        first_maybe_sent_at=first.claimed_at if first else now,
    )
    intent.refresh_from_db()
    return open_for_outcome(intent, ReasonCode.CONTRADICTION, now=now, check=check)


def add_reason(review: Review, reason: ReasonCode, *, now: datetime) -> None:
    """One more reason for an open case; what it recommends stays. The caller holds the intent and the case."""
    _add(review, [reason], now)


def open_for_settled(intent: Intent, reason: ReasonCode, words: str, *, now: datetime) -> Review:
    """A case for a settled intent that somebody asks to look at again; an open one gets the reason. `words`: what it
    is about, where nothing is known yet."""
    review = open_review(intent)
    if review is None:
        review = _open_or_get(intent, Purpose.OUTCOME, now)
        _say(review, None, words)
    _add(review, [reason], now)
    return review


def hold_the_unsent(intent: Intent, now: datetime) -> None:
    """What is recorded on its subject, in the whole family, is not sent before a person has looked."""
    unsent = Intent.objects.filter(kind_id=intent.kind_id, family=intent.family, status=Status.RECORDED)
    # One that a worker is claiming at this moment is left to the worker, which looks for disputes itself: waiting
    # for it, while it waits for the family's lock, would be a deadlock.
    for other in for_change(Intent, skip_locked=True).filter(pk__in=unsent).select_related("policy").order_by("pk"):
        if subjects.related(other.subject, intent.subject):
            holding.hold(other, actor=Actor.CHECKER, actor_id="checker", now=now)


def close(intent: Intent, how: ClosedHow, *, now: datetime) -> None:
    """Ends the intent's open review, if there is one. What people decided in it and has not taken effect is void."""
    review = open_review(intent)
    if review is None:
        return
    voiding.closed_meanwhile(review, now=now)
    Review.objects.filter(pk=review.pk).update(
        closed_at=now,
        closed_how=how,
        lease_until=None,
        waits_for="",
        waits_until=None,
        version=F("version") + 1,
    )
    decided = how is ClosedHow.DECISION
    events.put(intent, EventType.REVIEW_DECIDED if decided else EventType.REVIEW_CLOSED, at=now)


def _open_or_get(intent: Intent, purpose: Purpose, now: datetime) -> Review:
    review = open_review(intent)
    if review is not None:
        if review.purpose != purpose:
            review.purpose = purpose
            review.save(update_fields=["purpose"])
        return review
    events.put(intent, EventType.REVIEW_OPENED, at=now)
    return Review.objects.create(
        intent=intent,
        purpose=purpose,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        stake=stakes.of(intent),
        opened_at=now,
        due_at=deadlines.for_intent(intent, opened_at=now),
    )


def _add(review: Review, reasons: Iterable[ReasonCode], now: datetime) -> None:
    news = [ReviewReason.objects.get_or_create(review=review, code=code, defaults={"at": now})[1] for code in reasons]
    if any(news):
        returning.bring_back(review, why=returning.NEW_REASON, by="checker", now=now)


def _see(review: Review, check: Check | None, now: datetime) -> None:
    """What the page shows from now on. A look that failed shows no entries, so those of the last one stay.

    Other entries than before void what people decided about those, and bring a case back that waits.
    """
    if check is not None:
        review.verdict = Verdict(check.verdict)
    if check is None or check.verdict == Verdict.UNAVAILABLE or check.facts_digest == review.facts_digest:
        return
    voiding.facts_moved(review, check.facts_digest, now=now)
    if review.facts_digest or check.grounds_data["candidates"]:
        returning.bring_back(review, why=returning.NEW_FACTS, by="checker", now=now)
    review.facts_digest = check.facts_digest


def _say(review: Review, recommendation: Choice | None, words: str) -> None:
    review.recommendation, review.grounds = recommendation or "", words
    review.version += 1
    review.save(
        update_fields=[
            "recommendation",
            "grounds",
            "verdict",
            "facts_digest",
            "due_at",
            "purpose",
            "incident",
            "version",
        ]
    )
