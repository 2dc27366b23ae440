"""Withdraws what was never sent."""

from collections.abc import Iterable
from uuid import UUID

from django.db import transaction

from actions import outcomes, transitions
from actions.errors import TooLate
from actions.locking import for_change
from actions.models import Evidence, Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status


def cancel(
    intent_id: UUID, *, actor: Actor, actor_id: str, reason: Reason, evidence: Iterable[Evidence] = ()
) -> Intent:
    """Cancels an intent that is held or recorded; one that is cancelled already is returned as it is.

    `evidence`: what it rests on, such as a person's note.

    Raises TooLate once it may have been sent: whatever was tried must be proven not sent by our own transport.
    """
    with transaction.atomic():
        intent = for_change(Intent).get(pk=intent_id)
        if intent.status == Status.CANCELLED:
            return intent
        if intent.status not in (Status.HELD, Status.RECORDED) or not outcomes.proven_unsent(intent):
            raise TooLate(intent=intent)
        return transitions.apply(
            intent_id,
            expected=(Status.HELD, Status.RECORDED),
            to=Status.CANCELLED,
            actor=actor,
            actor_id=actor_id,
            reason=reason,
            evidence=evidence,
        )
