"""The tables of `reconciliation`."""

from reconciliation.words import (
    Choice,
    ClosedHow,
    DecisionReason,
    EntryRole,
    EntryState,
    IncidentKind,
    MatchRole,
    Purpose,
    ReasonCode,
    Verdict,
)

from .books import Check, LedgerEntry, Match
from .reviews import Comment, Decision, Incident, Review, ReviewReason

__all__ = [
    "Check",
    "Choice",
    "ClosedHow",
    "Comment",
    "Decision",
    "DecisionReason",
    "EntryRole",
    "EntryState",
    "Incident",
    "IncidentKind",
    "LedgerEntry",
    "Match",
    "MatchRole",
    "Purpose",
    "ReasonCode",
    "Review",
    "ReviewReason",
    "Verdict",
]
