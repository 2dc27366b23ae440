"""Who works on a case: a lease, taken by one conditional UPDATE."""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db.models import F, Q

from actions import times
from actions.errors import NotFound, ReviewClosed, ReviewHeld
from reconciliation.models import Review
from reconciliation.reviews import people

LEASE = timedelta(minutes=10)


def claim(review_id: int, *, person: User) -> Review:
    """Takes the case for ten minutes, or renews one's own lease. Raises ReviewHeld, ReviewClosed, NotFound."""
    people.must(people.may_decide(person))
    now = times.now()
    free = Q(owner=None) | Q(owner=person) | Q(lease_until__lt=now) | Q(lease_until=None)
    if Review.objects.filter(free, pk=review_id, closed_at__isnull=True).update(
        owner=person, lease_until=now + LEASE, version=F("version") + 1
    ):
        return Review.objects.select_related("intent", "owner").get(pk=review_id)
    raise why_not(review_id)


def why_not(review_id: int) -> ReviewHeld | ReviewClosed | NotFound:
    """Why a case can't be taken, to be raised."""
    review = Review.objects.select_related("owner").filter(pk=review_id).first()
    if review is None:
        return NotFound()
    if review.closed_at is not None:
        return closed(review)
    return ReviewHeld(owner=review.owner, until=review.lease_until)


def closed(review: Review) -> ReviewClosed:
    """Told to whoever comes second: by whom and when."""
    last = review.decisions.exclude(person=None).select_related("person").order_by("-id").first()
    return ReviewClosed(by=last.person if last else None, at=review.closed_at, how=review.closed_how)


def release(review_id: int, *, person: User) -> None:
    """Gives one's own case back; of somebody else's nothing changes."""
    Review.objects.filter(pk=review_id, owner=person, closed_at__isnull=True).update(
        owner=None, lease_until=None, version=F("version") + 1
    )


def take_next(*, person: User) -> Review | None:
    """Takes the most urgent case that nobody holds, never the same for two people; None when there is none."""
    people.must(people.may_decide(person))
    now = times.now()
    for pk in _unclaimed(now):
        try:
            return claim(pk, person=person)
        except (ReviewHeld, ReviewClosed):
            continue  # somebody was faster: the next one
    return None


def _unclaimed(now: datetime) -> list[int]:
    free = Q(owner=None) | Q(lease_until__lt=now) | Q(lease_until=None)
    return list(
        Review.objects.filter(free, closed_at__isnull=True, incident=None)
        .order_by("-customer_waiting", "due_at", "pk")
        .values_list("pk", flat=True)[:50]
    )


def holds(review: Review, person: User, now: datetime) -> bool:
    return review.owner_id == person.pk and review.lease_until is not None and review.lease_until >= now
