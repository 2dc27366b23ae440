"""Withdraws what was never sent."""

from uuid import UUID

from django.db import transaction

from actions import transitions
from actions.errors import TooLate
from actions.models import Executor, Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status


def cancel(intent_id: UUID, *, actor: Actor, actor_id: str, reason: Reason) -> Intent:
    """Cancels an intent that is held or recorded; one that is cancelled already is returned as it is.

    Raises TooLate once it may have been sent: from recorded, only when every attempt is proven not sent by Landed's
    own transport (a caller's word that it sent nothing is not proof).
    """
    with transaction.atomic():
        intent = Intent.objects.select_for_update().get(pk=intent_id)
        if intent.status == Status.CANCELLED:
            return intent
        by_word = intent.attempts.filter(executor=Executor.CALLER).exists()
        if intent.status not in (Status.HELD, Status.RECORDED) or by_word:
            raise TooLate(intent=intent)
        return transitions.apply(
            intent_id,
            expected=(Status.HELD, Status.RECORDED),
            to=Status.CANCELLED,
            actor=actor,
            actor_id=actor_id,
            reason=reason,
        )
