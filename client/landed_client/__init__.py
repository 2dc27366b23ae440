"""The agents' side of Landed: propose an action, wait for what became of it, and never do it twice."""

from landed_client.aclient import AsyncActions, AsyncLanded
from landed_client.carrying_out import Action, current_action
from landed_client.client import Actions, Landed
from landed_client.errors import (
    AlreadyDone,
    Cancelled,
    Failed,
    Held,
    KeyReused,
    LandedError,
    LimitExceeded,
    MayHaveHappened,
    NotAllowed,
    NotDone,
    NotFound,
    NotNow,
    OutcomeUnknown,
    Refused,
    TooLate,
    Unavailable,
    UnsettledDuplicate,
)
from landed_client.guarding import guarded
from landed_client.intents import Attempt, Claim, Event, Events, Intent, Page, Review

__all__ = [
    "Action",
    "Actions",
    "AlreadyDone",
    "AsyncActions",
    "AsyncLanded",
    "Attempt",
    "Cancelled",
    "Claim",
    "Event",
    "Events",
    "Failed",
    "Held",
    "Intent",
    "KeyReused",
    "Landed",
    "LandedError",
    "LimitExceeded",
    "MayHaveHappened",
    "NotAllowed",
    "NotDone",
    "NotFound",
    "NotNow",
    "OutcomeUnknown",
    "Page",
    "Refused",
    "Review",
    "TooLate",
    "Unavailable",
    "UnsettledDuplicate",
    "current_action",
    "guarded",
]
