"""A case waits for somebody's answer: out of the queue until then, looked up as before, and never for ever."""

from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F

from actions import times
from actions.errors import BadDecision, Invalid
from reconciliation.models import CommentKind, Review, WaitsFor
from reconciliation.reviews import claiming, commenting, deadlines, pending, people, returning

MAX_REFERENCE = 200


def longest_allowed(now: datetime) -> datetime:
    """Until when a case may wait at the very longest."""
    return now + timedelta(days=settings.LANDED_LONGEST_WAIT_DAYS)


def put_aside(
    review_id: int,
    *,
    person: User,
    waits_for: WaitsFor,
    reference: str,
    until: datetime,
    longest: datetime,
    note: str,
    version: int | None = None,
) -> Review:
    """Takes a case out of the queue until `until`, and no longer than `longest` however often that is moved.

    One's own, or one that nobody has; it becomes the person's own and their lease ends. It is due when it comes back.
    `reference` and `note` may be empty. `version`: that of the case as it was looked at, if it has to be that still.

    Raises Invalid (fields until, longest, reference, note), SeenIsStale (`version`), BadDecision (decided already),
    ReviewHeld, ReviewClosed, NotFound, PersonNotAllowed.
    """
    people.must(people.may_decide(person))
    reference = reference.strip()
    if len(reference) > MAX_REFERENCE:
        raise Invalid.field("reference", f"At most {MAX_REFERENCE} characters.")
    with transaction.atomic():
        review = commenting.locked(review_id, version=version)
        now = times.now()
        _refuse(review, person, now)
        _refuse_times(review, person, until, longest, now)
        text = _words(WaitsFor(waits_for), reference, until, longest, note)
        commenting.say(review, person=person, text=text, kind=CommentKind.WAITING)
        _leave_incident(review, now)
        Review.objects.filter(pk=review_id).update(
            waits_for=waits_for,
            waits_reference=reference,
            waits_until=until,
            waits_longest=longest,
            due_at=_due(review, until, now),
            stood_still=review.stood_still,
            stood_until=review.stood_until,
            owner=person,
            holder=None,
            lease_until=None,
            incident=None,
            version=F("version") + 1,
        )
        review.refresh_from_db()
    return review


def resume(review_id: int, *, person: User, note: str = "") -> Review:
    """Takes up a case that waits before its time: the owner, a supervisor, or anybody when it is nobody's.

    Raises BadDecision (it does not wait), ReviewHeld, ReviewClosed, NotFound, PersonNotAllowed, Invalid (the note).
    """
    people.must(people.may_decide(person))
    with transaction.atomic():
        review = commenting.locked(review_id)
        claiming.refuse_others(review, person)
        if review.waits_until is None:
            raise BadDecision("This case does not wait; it is in the queue.")
        returning.took_up(review, person=person, note=note, now=times.now())
    return review


def due(now: datetime, *, limit: int) -> list[int]:
    """Cases whose time to wait is over and that nobody has said so of yet."""
    found = Review.objects.filter(waits_until__lte=now, closed_at__isnull=True)
    return list(found.order_by("waits_until", "pk").values_list("pk", flat=True)[:limit])


def time_is_over(review_id: int) -> bool:
    """The clock brings a case back. False: somebody was faster."""
    with transaction.atomic():
        review = commenting.locked(review_id)
        now = times.now()
        if review.closed_at is not None or review.waits_until is None or review.waits_until > now:
            return False
        return returning.bring_back(review, why=returning.TIME_IS_OVER, by="clock", now=now)


def _refuse(review: Review, person: User, now: datetime) -> None:
    if review.closed_at is not None:
        raise claiming.closed(review)
    mine = review.owner_id in (None, person.pk)
    if not mine or (claiming.holds_now(review, now) and review.holder_id != person.pk):
        # Supervisors as well: they take it over first, so that the other person is told.
        raise claiming.why_not(review.pk)
    pending.refuse_decided(review)
    claiming.refuse_voter(review, person)


def _refuse_times(review: Review, person: User, until: datetime, longest: datetime, now: datetime) -> None:
    if until <= now:
        raise Invalid.field("until", "Choose a time that is still to come.")
    if longest < until:
        raise Invalid.field("longest", "The longest time can't end before the follow-up time.")
    if longest > longest_allowed(now):
        raise Invalid.field("longest", f"At the longest {settings.LANDED_LONGEST_WAIT_DAYS} days from now.")
    agreed = review.waits_longest
    if agreed is not None and longest > agreed and not people.may_supervise(person):
        raise Invalid.field(
            "longest",
            f"It was agreed to wait until {_at(agreed)} at the longest. A supervisor can agree to more.",
        )
    expires = review.intent.approve_before if review.intent is not None else None
    if expires is not None and until >= expires:
        raise Invalid.field("until", f"Its approval expires at {_at(expires)}: choose an earlier time.")


def _leave_incident(review: Review, now: datetime) -> None:
    """What it stood still for an outage so far counts, although it waits for something else now."""
    if review.incident is not None:
        deadlines.put_off(review, review.incident, until=review.incident.closed_at or now)


def _due(review: Review, until: datetime, now: datetime) -> datetime:
    """When it comes back, at the earliest; and no later than its approval expires. Of one that waits already, what
    its last time to come back was counts no more."""
    before = review.due_at if review.waits_until is None else deadlines.brought_forward(review, now)
    later = max(before, until)
    return deadlines.before_expiry(review.intent, later) if review.intent is not None else later


def _words(waits_for: WaitsFor, reference: str, until: datetime, longest: datetime, note: str) -> str:
    named = f", reference {reference}" if reference else ""
    first = f"Waits for {waits_for.label}{named}, until {_at(until)}, at the longest until {_at(longest)}."
    return f"{first}\n{note.strip()}".strip()


def _at(when: datetime) -> str:
    return f"{when:%Y-%m-%d %H:%M} UTC"
