"""Holds what was not sent yet, because something on its subject is in question."""

from datetime import datetime, timedelta

from actions import outcomes, policy, transitions
from actions.models import Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status


def hold(intent: Intent, *, actor: Actor, actor_id: str, now: datetime) -> None:
    """A recorded intent waits for a person, whoever noticed: a check, or a worker about to send it.

    For ever, where it rests on somebody's word that nothing was sent: only what was proven not to be sent expires
    as cancelled.
    """
    expires = now + timedelta(seconds=policy.read(intent.policy.text).approval_expires_s)
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.HELD,
        actor=actor,
        actor_id=actor_id,
        reason=Reason.HELD_ON_DISPUTE,
        now=now,
        hold_reasons="contradiction",
        guard_waived=False,  # a waiver was for what was known then
        approve_before=expires if outcomes.proven_unsent(intent) else None,
    )
