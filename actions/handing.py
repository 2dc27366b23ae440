"""What a claim hands on to whoever sends, and what comes back. Everything that sending needs, and no database."""

import os
import socket
from dataclasses import dataclass
from uuid import UUID

from actions import transport
from actions.connectors.base import Target, Wanted
from actions.holding import Why
from actions.models import Downstream, Intent


@dataclass(frozen=True)
class Claimed:
    """A committed attempt that now may be sent, with everything that sending needs and no database."""

    intent_id: UUID
    attempt_id: int
    connector: str
    target: Target
    wanted: Wanted
    call: transport.Call
    limits: transport.Limits
    # Whether the connector looks at the downstream before anything is sent, and until when (on the boot clock).
    look_first: bool = False
    look_until: float = 0.0


@dataclass(frozen=True)
class Objection:
    """Nothing was sent: what was looked at first speaks against it, or could not be seen (`reason` says which).

    `why`: what a person is asked because of it, where it is for a person.
    """

    reason: str
    message: str
    why: Why = "objected"


Came = transport.Reply | Objection


def worker_id() -> str:
    return f"{socket.gethostname()[:60]}/{os.getpid()}"


def target_of(downstream: Downstream) -> Target:
    """What a connector may know of a downstream; the secret is read from the environment here."""
    return Target(
        name=downstream.name,
        base_url=downstream.base_url,
        account=downstream.account,
        secret=os.environ.get(downstream.secret_env) if downstream.secret_env else None,
        config=downstream.config,
        dedupes=downstream.dedupes,
        connect_timeout_s=downstream.connect_timeout_ms / 1000,
        deadline_s=downstream.deadline_ms / 1000,
    )


def wanted_of(intent: Intent) -> Wanted:
    """What a connector may know of an intent: never note or context."""
    return Wanted(
        intent_id=str(intent.pk),
        idempotency_key=intent.idempotency_key,
        kind=intent.kind.name,
        subject=intent.subject,
        amount_minor=intent.amount_minor,
        amount=intent.amount,
        currency=intent.currency or None,
        params=intent.params_data,
    )
