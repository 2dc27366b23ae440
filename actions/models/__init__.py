"""The tables of `actions`."""

from .agents import Agent, Scope, Token, Usage
from .anchors import Anchoring
from .endpoints import DeliveryState, DeliveryTry, Endpoint, EventDelivery, TryResult
from .events import TOLD, Event, EventType
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
from .stops import Breaker, Line, Stop, StopScope

__all__ = [
    "HARMLESS",
    "TOLD",
    "Agent",
    "AmountRule",
    "Anchoring",
    "Attempt",
    "Breaker",
    "Chained",
    "ClosedBy",
    "DeliveryState",
    "DeliveryTry",
    "Downstream",
    "DuplicatePolicy",
    "Endpoint",
    "Event",
    "EventDelivery",
    "EventType",
    "Evidence",
    "EvidenceKind",
    "Executor",
    "Executors",
    "Intent",
    "Kind",
    "Line",
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
    "TryResult",
    "Usage",
]
