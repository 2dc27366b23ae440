"""The tables of `actions`."""

from .agents import Agent, Scope, Token
from .history import Chained
from .intents import (
    HARMLESS,
    Attempt,
    ClosedBy,
    Evidence,
    EvidenceKind,
    Executor,
    Intent,
    Result,
    SettledBy,
    Transition,
)
from .policy import (
    AmountRule,
    Downstream,
    DuplicatePolicy,
    Executors,
    Kind,
    LookAlikePolicy,
    LookUp,
    PolicySnapshot,
    Relook,
    Replay,
)

__all__ = [
    "HARMLESS",
    "Agent",
    "AmountRule",
    "Attempt",
    "Chained",
    "ClosedBy",
    "Downstream",
    "DuplicatePolicy",
    "Evidence",
    "EvidenceKind",
    "Executor",
    "Executors",
    "Intent",
    "Kind",
    "LookAlikePolicy",
    "LookUp",
    "PolicySnapshot",
    "Relook",
    "Replay",
    "Result",
    "Scope",
    "SettledBy",
    "Token",
    "Transition",
]
