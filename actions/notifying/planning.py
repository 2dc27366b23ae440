"""From events to deliveries: one for each endpoint that wants to hear of it."""

from datetime import datetime
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from actions import positions, times
from actions.locking import for_change
from actions.models import DeliveryState, Endpoint, Event, EventDelivery
from actions.notifying.schedule import GIVE_UP_AFTER

# Events that one pass takes on for an endpoint; the next pass is a second away.
BATCH: Final = 500
TOO_OLD: Final = "it was not delivered within two days"


def plan() -> int:
    """One pass: plans what happened since, and gives up what is too old. Returns how many deliveries were planned.

    Any number of processes may do this at once; each event comes to each endpoint once.
    """
    positions.stamp()
    head, now = positions.head(), times.now()
    new = Event.objects.filter(agent=OuterRef("agent"), position__gt=OuterRef("planned_to"))
    behind = Endpoint.objects.filter(Exists(new), active=True).order_by("pk")
    planned = sum(_plan_for(pk, head, now) for pk in list(behind.values_list("pk", flat=True)))
    _give_up(now)
    return planned


def _plan_for(endpoint_id: int, head: int, now: datetime) -> int:
    with transaction.atomic():
        endpoint = for_change(Endpoint, skip_locked=True).filter(pk=endpoint_id, active=True).first()
        if endpoint is None:
            return 0  # somebody else's pass has it, or it was paused
        since = Event.objects.filter(
            agent_id=endpoint.agent_id, position__gt=endpoint.planned_to, position__lte=head
        ).order_by("position")
        found = list(since[:BATCH])
        wanted = [one for one in found if one.type in endpoint.types and one.at > now - GIVE_UP_AFTER]
        EventDelivery.objects.bulk_create([_new(endpoint, one, now) for one in wanted], ignore_conflicts=True)
        if found:
            Endpoint.objects.filter(pk=endpoint_id).update(planned_to=found[-1].position)
    return len(wanted)


def _new(endpoint: Endpoint, event: Event, now: datetime) -> EventDelivery:
    return EventDelivery(endpoint=endpoint, event=event, created_at=now, next_at=now, give_up_at=now + GIVE_UP_AFTER)


def _give_up(now: datetime) -> None:
    old = Q(next_at__lte=now, give_up_at__lte=now)
    if not EventDelivery.objects.filter(old).exists():
        return
    with transaction.atomic():
        # What another process has locked is being dealt with: waiting for one another, row by row, is a deadlock.
        mine = list(for_change(EventDelivery, skip_locked=True).filter(old).values_list("pk", flat=True)[:BATCH])
        EventDelivery.objects.filter(pk__in=mine).update(
            state=DeliveryState.GIVEN_UP, next_at=None, lease_until=None, last_error=TOO_OLD
        )
