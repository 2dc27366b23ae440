"""The tables of `reconciliation`."""

from reconciliation.words import (
    AfterDeciding,
    Choice,
    ClosedHow,
    CommentKind,
    DecisionReason,
    EntryRole,
    EntryState,
    ErasedFor,
    IncidentKind,
    LeftToDo,
    MatchRole,
    NoticeKind,
    Purpose,
    ReasonCode,
    Theme,
    Verdict,
    WaitsFor,
)

from .books import Check, LedgerEntry, Match
from .desk import Attachment, Draft, Notice, Preferences
from .leftovers import Difference, LookBack
from .reviews import Comment, Decision, Incident, Review, ReviewReason
from .webhooks import Delivery, DeliveryOutcome

__all__ = [
    "AfterDeciding",
    "Attachment",
    "Check",
    "Choice",
    "ClosedHow",
    "Comment",
    "CommentKind",
    "Decision",
    "DecisionReason",
    "Delivery",
    "DeliveryOutcome",
    "Difference",
    "Draft",
    "EntryRole",
    "EntryState",
    "ErasedFor",
    "Incident",
    "IncidentKind",
    "LedgerEntry",
    "LeftToDo",
    "LookBack",
    "Match",
    "MatchRole",
    "Notice",
    "NoticeKind",
    "Preferences",
    "Purpose",
    "ReasonCode",
    "Review",
    "ReviewReason",
    "Theme",
    "Verdict",
    "WaitsFor",
]
