"""What people are told of by e-mail: written down here, in the transaction of what it is about or by the clock;
sent by `reconciliation.mailing`.

A case that waits for the end of an incident sends no notice of its own: the incident sends one for all of them.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db.models import CharField, Exists, F, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Cast, Concat

from reconciliation import incidents
from reconciliation.models import Decision, Incident, Notice, NoticeKind, ReasonCode, Review, ReviewReason
from reconciliation.reviews import stakes

# So many of each sort are written down in one pass of the clock; the next pass goes on.
_BATCH = 200
# What was opened longer ago is not new.
_NEW = timedelta(days=1)


def handed(review: Review, *, to: User, now: datetime) -> None:
    """Somebody was handed a case."""
    put_down(NoticeKind.HANDED, once=f"handed:{review.pk}:{review.version}:{to.pk}", now=now, review=review, to=to)


def vote_again(first: Decision, *, by: Decision, now: datetime) -> None:
    """Whoever gave a first vote hears that it counts no more, unless they did that themselves. `by`: the row that
    undid or voided it, or the second one."""
    if first.person is not None and first.person_id != by.person_id:
        put_down(NoticeKind.VOTE_AGAIN, once=f"vote_again:{by.pk}", now=now, review=first.review, to=first.person)


def put_down(
    kind: NoticeKind, *, once: str, now: datetime, review: Review | None = None, to: User | None = None
) -> None:
    """To be sent once, whoever says so how often. `once` names what it is about."""
    Notice.objects.get_or_create(
        once=once, defaults={"kind": kind, "review": review, "to": to, "created_at": now, "next_try_at": now}
    )


def sweep(now: datetime) -> int:
    """Writes down what is due to be told of: new high-value cases, those due soon, overdue, or overdue for long, and
    incidents. Any number of clocks at once write each once. How many were written down."""
    if not settings.LANDED_MAIL:
        return 0
    return sum(_write(kind, found, now) for kind, found in _cases(now)) + _write_incidents(now)


_high_value = ReviewReason.objects.filter(code=ReasonCode.HIGH_VALUE)


def _cases(now: datetime) -> Iterator[tuple[NoticeKind, QuerySet[Review]]]:
    soon = now + timedelta(seconds=settings.LANDED_DUE_SOON_S)
    late = now - timedelta(seconds=settings.LANDED_ESCALATE_S)
    here = _in_the_queue(now)
    # A case whose kind sets no limit for its currency is worth exactly one limit; in a currency that it doesn't even
    # list, more than one.
    high = Q(stake__gt=stakes.LIMIT) | Exists(_high_value.filter(review=OuterRef("pk")))
    yield NoticeKind.HIGH_VALUE, here.filter(high, opened_at__gt=now - _NEW)
    yield NoticeKind.DUE_SOON, here.filter(due_at__gt=now, due_at__lte=soon)
    yield NoticeKind.OVERDUE, here.filter(due_at__gt=late, due_at__lte=now)
    yield NoticeKind.ESCALATED, here.filter(due_at__lte=late)


def _in_the_queue(now: datetime) -> QuerySet[Review]:
    """Cases that somebody could deal with now: not part of an outage, and not put aside to wait."""
    awake = Q(waits_until=None) | Q(waits_until__lte=now)
    # Not `incident=None`: SQLite would take that for the narrowest condition and read every case that ever was.
    in_an_outage = Exists(Incident.objects.filter(pk=OuterRef("incident")))
    return Review.objects.filter(~in_an_outage, awake, closed_at__isnull=True)


def _once(kind: NoticeKind) -> Concat:
    """What a notice is about, made by the database, which has to find those told of already by the same text. A case
    that is due at another time, because it was put aside, is due, overdue and long overdue once more."""
    parts = ["pk"] if kind is NoticeKind.HIGH_VALUE else ["pk", "due_at"]
    texts = [part for name in parts for part in (Value(":"), Cast(F(name), CharField()))]
    return Concat(Value(str(kind)), *texts, output_field=CharField())


def _write(kind: NoticeKind, found: QuerySet[Review], now: datetime) -> int:
    told = Notice.objects.filter(once=OuterRef("about"))
    rows = [
        Notice(
            kind=kind,
            once=review.about,
            review=review,
            to=_whose(kind, review),
            created_at=now,
            next_try_at=now,
        )
        for review in _read(found.annotate(about=_once(kind)).filter(~Exists(told)))
    ]
    # Whoever was faster has written the same.
    Notice.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)


def _read(found: QuerySet[Any]) -> QuerySet[Any]:
    # These columns alone: the clock asks for four sorts every few seconds, and nearly always there is none.
    return found.select_related("owner").only("due_at", "owner__is_active").order_by("due_at", "pk")[:_BATCH]


def _whose(kind: NoticeKind, review: Review) -> User | None:
    """A case that is somebody's own concerns them; when it is escalated, or they have left, everybody it concerns."""
    theirs = kind in (NoticeKind.DUE_SOON, NoticeKind.OVERDUE) and review.owner is not None and review.owner.is_active
    return review.owner if theirs else None


def _write_incidents(now: datetime) -> int:
    told: QuerySet[Notice] = Notice.objects.filter(incident=OuterRef("pk"))
    found: list[Incident] = list(incidents.open_ones().filter(~Exists(told))[:_BATCH])
    rows = [
        Notice(
            kind=NoticeKind.INCIDENT,
            once=f"incident:{incident.pk}",
            incident=incident,
            created_at=now,
            next_try_at=now,
        )
        for incident in found
    ]
    Notice.objects.bulk_create(rows, ignore_conflicts=True)
    return len(rows)
