"""Deliveries that a person asks for again."""

from django.db import transaction
from django.db.models import Q, QuerySet

from actions import times
from actions.models import DeliveryState, Endpoint, EventDelivery
from actions.notifying.schedule import GIVE_UP_AFTER


def replay(delivery_id: int) -> bool:
    """Sends it again, whatever became of it, under the same webhook-id and with all its attempts before it.

    False: it is being sent at this moment.
    """
    return _again(EventDelivery.objects.filter(pk=delivery_id)) == 1


def replay_given_up(endpoint: Endpoint) -> int:
    """Sends everything again that was given up for `endpoint`; returns how many."""
    return _again(EventDelivery.objects.filter(endpoint=endpoint, state=DeliveryState.GIVEN_UP))


def _again(chosen: QuerySet[EventDelivery]) -> int:
    now = times.now()
    idle = Q(lease_until__isnull=True) | Q(lease_until__lte=now)
    with transaction.atomic():
        return chosen.filter(idle).update(
            state=DeliveryState.PENDING,
            attempts=0,
            next_at=now,
            give_up_at=now + GIVE_UP_AFTER,
            lease_until=None,
            delivered_at=None,
        )
