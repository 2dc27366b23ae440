"""The tables of `actions`."""

from .agents import Agent, Scope, Token, Usage
from .history import Chained
from .intents import (
    HARMLESS,
    Attempt,
    ClosedBy,
    Evidence,
    EvidenceKind,
    Executor,
    Intent,
    Observation,
    Observed,
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
from .stops import Breaker, Stop, StopScope

__all__ = [
    "HARMLESS",
    "Agent",
    "AmountRule",
    "Attempt",
    "Breaker",
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
    "Observation",
    "Observed",
    "PolicySnapshot",
    "Relook",
    "Replay",
    "Result",
    "Scope",
    "SettledBy",
    "Stop",
    "StopScope",
    "Token",
    "Transition",
    "Usage",
]
