"""A person opens a case themselves, or says that the customer waits for one."""

from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from actions import holding, subjects, times, transitions
from actions.errors import BadDecision, Invalid, NotFound
from actions.locking import for_change
from actions.models import Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation.models import CommentKind, ReasonCode, Review
from reconciliation.reviews import claiming, commenting, opening, people, returning

_SETTLED = "A person asked to look at this again. It counts as {status}; nothing new speaks against that."


def open_case(intent_id: UUID, *, person: User, reason: str, customer_waiting: bool = False) -> Review:
    """A case for any intent, or one more reason for its open one. `reason`: for colleagues, agents never see it.

    What is submitted becomes unknown; what is recorded is held, so that nobody sends it meanwhile; what is settled
    stays as it is. Raises Invalid (the reason), BadDecision (it is being sent), NotFound, PersonNotAllowed.
    """
    people.must(people.may_decide(person))
    if not reason.strip() or len(reason) > commenting.MAX:
        raise Invalid.field("reason", f"Say why, in 1 to {commenting.MAX} characters.")
    with transaction.atomic():
        intent = _locked(intent_id)
        now = times.now()
        if why := against(intent, now):
            raise BadDecision(why)
        review = _open(intent, person, now)
        # Somebody asks: no outage explains it away.
        raised = customer_waiting or review.customer_waiting
        Review.objects.filter(pk=review.pk).update(incident=None, customer_waiting=raised, version=F("version") + 1)
        commenting.say(review, person=person, text=reason, kind=CommentKind.OPENED)
        review.refresh_from_db()
        _end_waiting(review, person)
    return review


def against(intent: Intent, now: datetime) -> str:
    """Why no case can be opened at this moment; "" when one can."""
    if intent.status != Status.SUBMITTED or intent.lease_until is None:
        return ""
    if intent.lease_until > now:
        return "It is being sent at this moment. Whoever sends it says in a moment what came of it: wait for that."
    return "Whoever was sending it never said how it ended; it becomes unknown in a moment. Try again then."


def warning(intent: Intent) -> str:
    """What to know before opening one; "" when nothing changes for the intent."""
    return {
        Status.SUBMITTED: (
            "It may have been sent and its answer may still be on its way. With a case it counts as unknown, and a "
            "person has to decide unless the answer or the ledger does."
        ),
        Status.RECORDED: "It was not sent yet. With a case it is held: nobody sends it before a person approves.",
    }.get(Status(intent.status), "")


def customer_waits(review_id: int, *, person: User, waits: bool) -> Review:
    """Says that the customer waits for a case, which raises it in the queue, or that they don't any more. Said again
    of one that was put aside meanwhile, it brings that one back as the first time would.

    Raises ReviewClosed, NotFound, PersonNotAllowed.
    """
    people.must(people.may_decide(person))
    with transaction.atomic():
        review = commenting.locked(review_id)
        if review.closed_at is not None:
            raise claiming.closed(review)
        put_aside = review.waits_until is not None
        if review.customer_waiting == waits and not (waits and put_aside):
            return review
        if waits:
            commenting.say(review, person=person, text="The customer waits.", kind=CommentKind.RAISED)
        else:
            commenting.say(review, person=person, text="The customer does not wait any more.")
        if waits:
            _end_waiting(review, person)
        review.customer_waiting = waits
        review.incident = None if waits else review.incident
        review.version += 1
        review.save(update_fields=["customer_waiting", "incident", "version"])
    return review


def _end_waiting(review: Review, person: User) -> None:
    """Somebody asks for it now, so it is in the queue again."""
    if review.waits_until is not None:
        returning.took_up(review, person=person, note="", now=times.now())


def _locked(intent_id: UUID) -> Intent:
    """The family before the row: what is recorded is held, as a claim would send it."""
    if not Intent.objects.filter(pk=intent_id).exists():
        raise NotFound()
    subjects.lock_family_of(intent_id)
    return for_change(Intent).select_related("kind", "policy", "downstream").get(pk=intent_id)


def _open(intent: Intent, person: User, now: datetime) -> Review:
    who = f"person:{person.pk}"
    if intent.status == Status.SUBMITTED:
        intent = transitions.apply(
            intent.pk,
            expected=Status.SUBMITTED,
            to=Status.UNKNOWN,
            actor=Actor.REVIEWER,
            actor_id=who,
            reason=Reason.IN_REVIEW,
            now=now,
            fence=intent.fence,
        )
    elif intent.status == Status.RECORDED:
        # The listener opens the case for its approval.
        holding.hold(intent, actor=Actor.REVIEWER, actor_id=who, now=now, why="requested")
        intent = Intent.objects.select_related("policy").get(pk=intent.pk)
    if (found := opening.open_review(intent)) is not None:
        opening.add_reason(found, ReasonCode.REQUESTED, now=now)
        return found
    newest = intent.checks.order_by("-position").first()
    if not intent.settled:
        return opening.open_for_outcome(intent, ReasonCode.REQUESTED, now=now, check=newest)
    words = _SETTLED.format(status=intent.get_status_display())
    review = opening.open_for_settled(intent, ReasonCode.REQUESTED, words, now=now)
    if newest is not None:
        Review.objects.filter(pk=review.pk).update(verdict=newest.verdict, facts_digest=newest.facts_digest)
    return review
