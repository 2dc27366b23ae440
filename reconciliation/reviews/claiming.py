"""Who works on a case, and whose it is.

Working on it is a lease, taken by one conditional UPDATE and renewed while the person is active. Apart from that a
case may have an owner: whoever it was handed to, took it over, or put it aside to wait. It stays theirs when the
lease ends.
"""

from collections.abc import Collection
from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from actions import times
from actions.errors import BadDecision, Invalid, NotFound, ReviewClosed, ReviewHeld
from actions.locking import for_change
from reconciliation.models import Choice, ClosedHow, CommentKind, Decision, Review
from reconciliation.reviews import commenting, notices, pending, people, returning

LEASE = timedelta(minutes=10)
VOTED = "The first vote is theirs, so a different person has to decide this case now."
YOU_VOTED = "You gave the first vote, so a different person has to decide this case now."
# So many of the most urgent ones are tried when others are faster.
_TRIED = 50
# The order of the queue: who waits, what is due, how much is at stake.
ORDER = ("-customer_waiting", "due_at", "-stake", "id")


def leased(now: datetime) -> Q:
    """In somebody's hands at this moment."""
    return Q(holder__isnull=False, lease_until__gte=now)


def waiting(now: datetime) -> Q:
    """Put aside until later."""
    return Q(waits_until__gt=now)


def unclaimed(now: datetime) -> Q:
    """Nobody's, in the queue, and not part of an outage."""
    return (Q(holder=None) | Q(lease_until=None) | Q(lease_until__lt=now)) & Q(
        Q(waits_until=None) | Q(waits_until__lte=now), owner=None, incident=None, closed_at__isnull=True
    )


def claim(review_id: int, *, person: User) -> Review:
    """Takes the case for ten minutes, or renews one's own lease.

    Raises ReviewHeld, ReviewClosed, NotFound, and BadDecision for whoever gave its first vote: they can't give the
    second, and would keep others from it.
    """
    people.must(people.may_decide(person))
    now = times.now()
    free = Q(holder=None) | Q(holder=person) | Q(lease_until__lt=now) | Q(lease_until=None)
    whose = (Q(owner=None) | Q(owner=person)) & ~Exists(_first_votes(person).filter(review=OuterRef("pk")))
    with transaction.atomic():
        # Waited for before the UPDATE: on PostgreSQL one that waits itself knows no vote that was given meanwhile.
        for_change(Review).filter(pk=review_id).values_list("pk").first()
        claimed = Review.objects.filter(free & whose, pk=review_id, closed_at__isnull=True).update(
            holder=person, lease_until=now + LEASE, version=F("version") + 1
        )
    if claimed:
        return Review.objects.select_related("intent", "holder", "owner").get(pk=review_id)
    if _first_votes(person).filter(review=review_id, review__closed_at=None).exists():
        raise BadDecision(YOU_VOTED)
    raise why_not(review_id)


def renew(review_id: int, *, person: User) -> datetime | None:
    """Keeps one's own lease alive, until when it says. None: somebody else has the case by now, or it is closed."""
    if not people.may_decide(person):
        return None
    until = times.now() + LEASE
    mine = Review.objects.filter(pk=review_id, holder=person, closed_at__isnull=True, lease_until__isnull=False)
    return until if mine.update(lease_until=until) else None


def why_not(review_id: int) -> ReviewHeld | ReviewClosed | NotFound:
    """Why a case can't be taken, to be raised."""
    review = Review.objects.select_related("holder", "owner").filter(pk=review_id).first()
    if review is None:
        return NotFound()
    if review.closed_at is not None:
        return closed(review)
    now = times.now()
    if review.holder is not None and review.lease_until is not None and review.lease_until >= now:
        return ReviewHeld(owner=review.holder, until=review.lease_until)
    return ReviewHeld("This case belongs to somebody else. A supervisor can take it over.", owner=review.owner)


def closed(review: Review) -> ReviewClosed:
    """Told to whoever comes second: by whom and when."""
    # What took effect, or a correction that was refused. Votes that somebody voided on the way ended nothing.
    ended = Q(choice=Choice.EFFECT) | Q(choice=Choice.VOID, about__choice=Choice.CORRECT)
    last = review.decisions.filter(ended).exclude(person=None).select_related("person").order_by("-id").first()
    by_person = review.closed_how == ClosedHow.DECISION and last is not None
    return ReviewClosed(by=last.person if by_person and last else None, at=review.closed_at, how=review.closed_how)


def release(review_id: int, *, person: User) -> None:
    """Gives one's own case back; of somebody else's nothing changes. Whose case it is stays as it is."""
    _let_go(Review.objects.filter(pk=review_id, holder=person))


def release_all(*, person: User) -> None:
    """Gives back every case that the person works on: they have gone."""
    _let_go(Review.objects.filter(holder=person))


def release_others(review_id: int, *, person: User) -> list[int]:
    """Gives back what the person works on besides this case, and neither owns nor has decided: one person works on
    one case. Returns which ones."""
    held = Review.objects.filter(leased(times.now()), ~Exists(_standing()), holder=person, closed_at__isnull=True)
    others = held.exclude(pk=review_id).exclude(owner=person)
    found = list(others.order_by("pk").values_list("pk", flat=True))
    _let_go(Review.objects.filter(pk__in=found, holder=person).exclude(owner=person))
    return found


def _let_go(found: QuerySet[Review]) -> None:
    found.filter(closed_at__isnull=True).update(holder=None, lease_until=None, version=F("version") + 1)


def disown(review_id: int, *, person: User) -> None:
    """Puts one's own case back for everybody. Raises NotFound."""
    with transaction.atomic():
        review = commenting.locked(review_id)
        mine = Review.objects.filter(pk=review_id, owner=person, closed_at__isnull=True)
        if mine.update(owner=None, holder=None, lease_until=None, version=F("version") + 1):
            commenting.say(review, person=person, text="Gives this case back, for everybody.")


def take_next(*, person: User, besides: Collection[int] = ()) -> Review | None:
    """Takes the most urgent case that nobody has, never the same for two people; None when there is none.

    `besides`: ids of cases that the person has skipped.
    """
    people.must(people.may_decide(person))
    for pk in _best(person, besides, times.now()):
        try:
            return claim(pk, person=person)
        except (ReviewHeld, ReviewClosed, BadDecision):
            continue  # somebody was faster, or they have voted in another tab: the next one
    return None


def _best(person: User, besides: Collection[int], now: datetime) -> list[int]:
    # What is decided and only waits for its undo window, or for somebody else's vote, is nothing to do for them.
    decided = _standing()
    voted = _first_votes(person).filter(review=OuterRef("pk"))
    found = Review.objects.filter(unclaimed(now), ~Exists(decided), ~Exists(voted)).exclude(pk__in=besides)
    return list(found.order_by(*ORDER).values_list("pk", flat=True)[:_TRIED])


def _standing() -> QuerySet[Decision]:
    """Of the case around it: decided, while the time to undo it runs."""
    return Decision.objects.filter(
        choice__in=pending.CHOICES, followed_by=None, takes_effect_at__isnull=False, review=OuterRef("pk")
    )


def holds(review: Review, person: User, now: datetime) -> bool:
    return review.holder_id == person.pk and review.lease_until is not None and review.lease_until >= now


def keep(review_id: int, *, person: User) -> Review:
    """Makes a case one's own for as long as it is open: nobody else can claim it when the lease is over.

    Raises what `claim` raises.
    """
    claim(review_id, person=person)
    with transaction.atomic():
        review = commenting.locked(review_id)
        mine = Review.objects.filter(pk=review_id, holder=person, closed_at__isnull=True).exclude(owner=person)
        if mine.update(owner=person, version=F("version") + 1):
            commenting.say(review, person=person, text="Keeps this case as their own.", kind=CommentKind.TAKEN)
            review.refresh_from_db()
    return review


def stand_back(review_id: int, *, person: User) -> None:
    """After a first vote: the case waits for somebody else, so nothing may keep them from it."""
    put_aside = Review.objects.filter(pk=review_id, holder=person, waits_until__isnull=False).first()
    if put_aside is not None:
        returning.clear(put_aside, now=times.now())
    Review.objects.filter(pk=review_id, owner=person).update(owner=None)
    Review.objects.filter(pk=review_id, holder=person).update(
        holder=None, lease_until=None, waits_for="", waits_reference="", waits_until=None, version=F("version") + 1
    )


def refuse_voter(review: Review, person: User) -> None:
    """Whoever gave the first vote can't give the second, so the case can't be theirs. Raises BadDecision."""
    if has_voted(review, person):
        raise BadDecision(VOTED)


def has_voted(review: Review, person: User) -> bool:
    """Whether the first vote of a case is theirs, and still counts."""
    return _first_votes(person).filter(review=review).exists()


def _first_votes(person: User) -> QuerySet[Decision]:
    return Decision.objects.filter(person=person, choice__in=pending.CHOICES, followed_by=None, takes_effect_at=None)


def hand_over(review_id: int, *, person: User, to: User, note: str, version: int | None = None) -> Review:
    """Makes it somebody else's case, with a note for them. One's own, one that nobody has, or, for a supervisor, any.
    `version`: that of the case as it was looked at, if it has to be that still.

    Raises SeenIsStale (`version`), BadDecision, Invalid (the note), ReviewHeld, ReviewClosed, NotFound,
    PersonNotAllowed.
    """
    people.must(people.may_decide(person))
    if not (to.is_active and people.may_decide(to)):
        raise BadDecision("This person can't decide cases.")
    if not note.strip():
        raise Invalid.field("note", "Say in a note what they should know.")
    with transaction.atomic():
        review = commenting.locked(review_id, version=version)
        refuse_others(review, person)
        pending.refuse_decided(review)
        refuse_voter(review, to)
        commenting.say(review, person=person, text=note, kind=CommentKind.HANDED, to=to)
        _assign(review, to)
        if to.pk != person.pk:
            notices.handed(review, to=to, now=times.now())
    return review


def take_over(review_id: int, *, person: User, note: str = "") -> Review:
    """Makes somebody else's case one's own, lease and all. Supervisors; the other person's page is told."""
    people.must(people.may_supervise(person))
    with transaction.atomic():
        review = commenting.locked(review_id)
        if review.closed_at is not None:
            raise closed(review)
        pending.refuse_decided(review)
        refuse_voter(review, person)
        commenting.say(
            review,
            person=person,
            text=note.strip() or "Taken over.",
            kind=CommentKind.TAKEN,
            to=review.owner or review.holder,
        )
        _assign(review, person)
    return claim(review_id, person=person)


def refuse_others(review: Review, person: User) -> None:
    """Raises ReviewHeld for somebody else's case, but for supervisors; ReviewClosed."""
    if review.closed_at is not None:
        raise closed(review)
    if people.may_supervise(person):
        return
    others = holds_now(review, times.now()) and review.holder_id != person.pk
    if others or (review.owner_id is not None and review.owner_id != person.pk):
        raise why_not(review.pk)


def holds_now(review: Review, now: datetime) -> bool:
    return review.holder_id is not None and review.lease_until is not None and review.lease_until >= now


def _assign(review: Review, to: User) -> None:
    Review.objects.filter(pk=review.pk).update(owner=to, holder=None, lease_until=None, version=F("version") + 1)
    review.refresh_from_db()
