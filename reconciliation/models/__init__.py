"""The tables of `reconciliation`."""

from .books import Check, EntryRole, EntryState, LedgerEntry, Match, MatchRole, Verdict
from .reviews import (
    Choice,
    ClosedHow,
    Comment,
    Decision,
    DecisionReason,
    Incident,
    IncidentKind,
    Purpose,
    ReasonCode,
    Review,
    ReviewReason,
)

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
