"""Holds what was not sent yet, because a person has to look before it is."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, Literal

from actions import outcomes, policy, transitions
from actions.models import Evidence, Intent
from actions.reasons import Reason
from actions.statuses import Actor, Status

# Something on its subject is in question; a stop applies; the connector's look before sending objects; a person asks.
Why = Literal["contradiction", "stopped", "objected", "requested"]
OBJECTED: Final = "objected"

_REASONS: Final = {
    "contradiction": Reason.HELD_ON_DISPUTE,
    "stopped": Reason.HELD_ON_STOP,
    "objected": Reason.HELD_ON_OBJECTION,
    "requested": Reason.HELD_ON_REQUEST,
}


def hold(
    intent: Intent,
    *,
    actor: Actor,
    actor_id: str,
    now: datetime,
    why: Why = "contradiction",
    evidence: Iterable[Evidence] = (),
) -> None:
    """A recorded intent waits for a person, whoever noticed: a check, a person, or a worker about to send it.

    For ever, where it rests on somebody's word that nothing was sent: only what was proven not to be sent expires
    as cancelled.
    """
    expires = now + timedelta(seconds=policy.read(intent.policy.text).approval_expires_s)
    # An objection that a person has approved against is remembered, so that it isn't raised again.
    known = [OBJECTED] if OBJECTED in intent.hold_reasons and why != OBJECTED else []
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.HELD,
        actor=actor,
        actor_id=actor_id,
        reason=_REASONS[why],
        evidence=evidence,
        now=now,
        hold_reasons=",".join([*known, why]),
        guard_waived=False,  # a waiver was for what was known then
        approve_before=expires if outcomes.proven_unsent(intent) else None,
    )
