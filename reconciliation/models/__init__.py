"""The tables of `reconciliation`."""

from reconciliation.words import (
    Choice,
    ClosedHow,
    DecisionReason,
    EntryRole,
    EntryState,
    IncidentKind,
    LeftToDo,
    MatchRole,
    Purpose,
    ReasonCode,
    Verdict,
)

from .books import Check, LedgerEntry, Match
from .leftovers import Difference, LookBack
from .reviews import Comment, Decision, Incident, Review, ReviewReason
from .webhooks import Delivery, DeliveryOutcome

__all__ = [
    "Check",
    "Choice",
    "ClosedHow",
    "Comment",
    "Decision",
    "DecisionReason",
    "Delivery",
    "DeliveryOutcome",
    "Difference",
    "EntryRole",
    "EntryState",
    "Incident",
    "IncidentKind",
    "LedgerEntry",
    "LeftToDo",
    "LookBack",
    "Match",
    "MatchRole",
    "Purpose",
    "ReasonCode",
    "Review",
    "ReviewReason",
    "Verdict",
]
