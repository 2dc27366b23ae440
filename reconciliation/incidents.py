"""Incidents: what explains many cases at once. One is open per downstream and line, for as long as its breaker is.
And one per agent that a limit paused, until somebody lets it go on.

While it is open, cases that are there only because nothing could be found out wait for its end in one line of the
queue, though not past the time when they are due, and what they are due by is put off by as long as it lasted. Then
all of them are looked up again, before people see what is left of them one by one.
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet

from actions.locking import for_change
from actions.models import Agent, Downstream, Intent, Line, LookUp
from actions.statuses import Status
from reconciliation.models import Check, Incident, IncidentKind, Purpose, ReasonCode, Review, ReviewReason
from reconciliation.reviews import deadlines

_KINDS = {Line.SENDING: IncidentKind.SENDING, Line.LOOKING: IncidentKind.BOOKS}
_BATCH = 500
# For so long a case waits for its look after an incident; then a person gets it as it is.
_PATIENCE = timedelta(minutes=10)


def on_breaker(downstream: Downstream, line: str, is_open: bool, at: datetime) -> None:
    """Hears of breakers, inside the transaction that moves them: nothing here waits for other rows."""
    kind = _KINDS[Line(line)]
    if is_open:
        Incident.objects.get_or_create(
            kind=kind,
            downstream=downstream,
            closed_at=None,
            defaults={"reason": f"no_answers_{line}", "opened_at": at},
        )
    else:
        Incident.objects.filter(kind=kind, downstream=downstream, closed_at=None).update(closed_at=at)


def on_limit(agent: Agent, limit: str, at: datetime) -> None:
    """Hears of an agent that was paused by a limit of its own, inside the transaction that pauses it."""
    Incident.objects.get_or_create(
        kind=IncidentKind.AGENT, agent=agent, closed_at=None, defaults={"reason": limit, "opened_at": at}
    )


def end_of_agent(agent: Agent, at: datetime) -> int:
    """The agent goes on: its incident is over."""
    return Incident.objects.filter(kind=IncidentKind.AGENT, agent=agent, closed_at=None).update(closed_at=at)


def _end_of_running(now: datetime) -> int:
    """The same for whoever was let go on elsewhere: in the admin, or by a policy file."""
    running = Incident.objects.filter(kind=IncidentKind.AGENT, agent__paused=False, closed_at=None)
    # In one statement, as it may be paused anew at this moment; and none of it each second when there is nothing.
    return running.update(closed_at=now) if running.exists() else 0


def open_ones() -> QuerySet[Incident]:
    return Incident.objects.select_related("downstream", "agent").filter(closed_at=None).order_by("opened_at", "pk")


def sweep(now: datetime) -> int:
    """One pass: gathers cases under open incidents, has everything looked up after closed ones, and lets their
    cases go. Any number at once equals one."""
    changed = sum(_gather(incident, now) for incident in _all_of(open_ones().filter(downstream__isnull=False)))
    over = Incident.objects.filter(closed_at__isnull=False, rechecked_at=None, downstream__isnull=False)
    changed += sum(_look_again(incident, now) for incident in _all_of(over))
    return changed + _let_go(now) + _end_of_running(now)


def _all_of(found: QuerySet[Incident]) -> list[Incident]:
    # Every second, and nearly always there is none: to ask that is cheaper than to ask for whole rows.
    return list(found) if found.exists() else []


def _gather(incident: Incident, now: datetime) -> int:
    """Cases whose only reason is that nothing can be found out. Somebody's own case stays with them, and so does one
    that is due, or that only people can find out about: an outage hides nothing for ever."""
    if incident.downstream is None or incident.downstream.look_up == LookUp.NONE:
        return 0
    other_reasons = ReviewReason.objects.filter(review=OuterRef("pk")).exclude(code=ReasonCode.STILL_UNKNOWN)
    with transaction.atomic():
        found = for_change(Review, skip_locked=True).filter(
            ~Exists(other_reasons),
            # A lease that ran out keeps its holder in the row; nobody works on the case any more.
            Q(holder=None) | Q(lease_until=None) | Q(lease_until__lt=now),
            incident=None,
            closed_at=None,
            owner=None,
            waits_until=None,
            purpose=Purpose.OUTCOME,
            customer_waiting=False,
            due_at__gt=now,
            intent__downstream=incident.downstream_id,
        )
        ids = list(found.order_by("pk").values_list("pk", flat=True)[:_BATCH])
        return Review.objects.filter(pk__in=ids).update(incident=incident)


def _look_again(incident: Incident, now: datetime) -> int:
    """Everything whose look was put off, or planned for much later, is due now."""
    waiting = Intent.objects.filter(
        Q(status=Status.UNKNOWN) | Q(status=Status.SUBMITTED, lease_until=None),
        # What somebody looks at already is theirs: taken from them, their look would prove nothing.
        Q(looking_until=None) | Q(looking_until__lte=now),
        downstream=incident.downstream_id,
        next_check_at__gt=now,
        status_since__lte=incident.closed_at,
    ).exclude(downstream__look_up=LookUp.SERVICE)
    with transaction.atomic():
        due = list(waiting.order_by("pk").values_list("pk", flat=True)[:_BATCH])
        ids = list(for_change(Intent, skip_locked=True).filter(pk__in=due).values_list("pk", flat=True))
        changed = Intent.objects.filter(pk__in=ids).update(next_check_at=now, updated_at=now)
    if len(due) == _BATCH:
        return changed  # the next pass goes on
    return changed + Incident.objects.filter(pk=incident.pk, rechecked_at=None).update(rechecked_at=now)


def _let_go(now: datetime) -> int:
    """Cases whose incident is over and whose intent was looked at since, or can't be: people see them again."""
    looked = Check.objects.filter(intent=OuterRef("intent"), at__gt=OuterRef("incident__closed_at"))
    over = Q(intent__next_check_at=None) | Q(incident__closed_at__lt=now - _PATIENCE) | Exists(looked)
    held = Review.objects.filter(incident__isnull=False, closed_at=None).order_by("pk")
    if not held.exists():
        return 0
    found = held.filter(Q(due_at__lte=now) | (over & Q(incident__closed_at__isnull=False)))
    return sum(_release(pk, now) for pk in list(found.values_list("pk", flat=True)[:_BATCH]))


def _release(review_id: int, now: datetime) -> bool:
    with transaction.atomic():
        review = for_change(Review, skip_locked=True).filter(pk=review_id, closed_at=None).first()
        if review is None or review.incident_id is None:
            return False
        incident = Incident.objects.get(pk=review.incident_id)
        if incident.closed_at is None:
            # Due, and the outage goes on: somebody has to decide it without the books.
            Review.objects.filter(pk=review_id).update(incident=None, version=F("version") + 1)
            return review.due_at <= now
        # Another line of the same downstream may be away still: then it goes on waiting, for that.
        still = (
            Incident.objects.filter(downstream=incident.downstream_id, closed_at=None).order_by("opened_at").first()
        )
        deadlines.put_off(review, incident, until=incident.closed_at)
        review.incident = still
        review.version += 1
        review.save(update_fields=["incident", "due_at", *deadlines.STOOD_STILL, "version"])
    return True
