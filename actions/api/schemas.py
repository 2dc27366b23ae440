"""The shapes of bodies, for the OpenAPI document. Answers are written by `showing`; a test holds the two together."""

from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field

from actions import leases
from actions.guidance import Step
from actions.models import EventType
from actions.statuses import Status

__all__ = [
    "AgentOut",
    "ClaimBodyIn",
    "ClaimOut",
    "EventsOut",
    "HistoryOut",
    "IntentOut",
    "KindOut",
    "KindsOut",
    "PageOut",
    "ProposalIn",
    "ReportIn",
]

_DECIMAL = r"^(0|[1-9][0-9]*)(\.[0-9]+)?$"


class Context(BaseModel):
    """Never sent downstream."""

    model_config = ConfigDict(extra="forbid")

    run: str = ""
    ticket: str = ""
    on_behalf_of: str = ""


class ProposalIn(BaseModel):
    """What an agent wants to be done."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"title": "Proposal"})

    kind: str
    subject: str | None = Field(None, description="May be left out where the kind derives it from params.")
    amount: str | float | None = Field(
        None, description='A decimal string ("50.00"), or a number that is read exactly from its digits.'
    )
    currency: str | None = Field(None, description="ISO 4217.")
    params: dict[str, Any] = {}
    note: str = Field("", description="Why the agent wants it.")
    context: Context = Context()
    executor: Literal["landed", "caller"] = "landed"
    claim_token: str | None = Field(
        None, description="With executor caller: recording and claiming are one call, and only its holder may send."
    )
    send_before: datetime | None = None
    repeat_of: UUID | None = Field(
        None, description="The caller means a second one. Shown to reviewers; no permission."
    )


class AttemptOut(Schema):
    number: int
    lease_until: datetime
    may_send: bool = Field(description="True only for the holder of the claim token, while the lease lasts.")


class ReviewOut(Schema):
    open: bool
    for_: Literal["approval", "outcome"] = Field(alias="for")
    due_at: datetime


class IntentOut(Schema):
    """An intent as it is now. Read a value that you don't know as: wait."""

    id: UUID
    kind: str
    subject: str
    amount: str | None = Field(pattern=_DECIMAL)
    currency: str | None
    params: dict[str, Any]
    context: dict[str, str]
    executor: Literal["landed", "caller"]
    status: Status
    status_reason: str
    settled: bool
    disputed: bool
    idempotency_key: str
    external_id: str | None
    settled_amount: str | None
    settled_by: str | None
    attempt_count: int
    attempt: AttemptOut | None
    replay_safe_until: datetime | None
    send_before: datetime | None
    next_step: Step
    ask_again_at: datetime | None
    may_propose_again: bool
    message: str = Field(description="One plain sentence for a model.")
    customer_message: str = Field(description="One plain sentence for the customer.")
    review: ReviewOut | None
    look_alike_of: UUID | None
    sequence: int
    created_at: datetime
    updated_at: datetime
    settled_at: datetime | None
    erased_at: datetime | None = Field(
        description="Since then params and context are empty: what they said about people was erased."
    )
    differs: list[str] = Field([], description="Only on a replay: what was other than stored, and binds nothing.")


class ClaimBodyIn(BaseModel):
    """A token that the caller mints and keeps: whoever shows it may send."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"title": "Claim"})

    claim_token: str = Field(min_length=1, max_length=255, description="Visible ASCII; best 32 random bytes.")
    lease_s: int | None = Field(
        None, ge=leases.SHORTEST_S, le=leases.LONGEST_S, description="Seconds; the downstream's own by default."
    )


class ReportIn(BaseModel):
    """What came of one attempt."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"title": "Report"})

    attempt: int = Field(ge=1, description="Its number.")
    claim_token: str = Field(min_length=1, max_length=255)
    outcome: Literal["confirmed", "failed", "unknown", "not_sent"] = Field(
        description="failed: definitely refused. No usable answer is unknown, never failed."
    )
    external_id: str | None = Field(None, max_length=255, description="The downstream's own id.")
    answer: dict[str, Any] | None = Field(
        None, description="What the downstream said; kept as evidence. failed needs it."
    )


class ClaimOut(Schema):
    attempt: AttemptOut
    idempotency_key: str = Field(description="Send it with this key and no other.")


class PageOut(Schema):
    data: list[IntentOut]
    next_cursor: str | None


class TransitionOut(Schema):
    sequence: int
    from_: Status | None = Field(alias="from")
    to: Status
    actor: Literal["agent", "machine", "person"]
    reason: str
    at: datetime


class SendingOut(Schema):
    number: int
    claimed_at: datetime
    closed_at: datetime | None
    result: str | None
    reason: str | None
    phase: str | None
    http_status: int | None


class CheckOut(Schema):
    at: datetime
    verdict: str


class HistoryOut(Schema):
    transitions: list[TransitionOut]
    attempts: list[SendingOut]
    checks: list[CheckOut]


class EventOut(Schema):
    """One thing that happened. What it means now is in the intent: read that."""

    position: int = Field(description="Its place in the order of commits, over all intents; with gaps.")
    type: EventType = Field(description="Read a value that you don't know as: something changed.")
    intent: UUID
    sequence: int | None = Field(description="The intent's own count of its changes of status; null: it is none.")
    status: Status | None = Field(description="The intent's status with this event, where it is about that.")
    at: datetime


class EventsOut(Schema):
    data: list[EventOut]
    next: int = Field(description="Pass it on as `after`.")
    has_more: bool = Field(description="Whether there is more already: ask again at once.")


class LeftOut(Schema):
    """Requests that are left of the last sixty seconds' allowance."""

    propose: int = Field(description="POST /intents, replays included.")
    other: int = Field(description="Everything else; ten times as many.")


class LimitOut(Schema):
    """One limit: an amount (a decimal string) with its currency, or a count."""

    name: Literal["per_action", "per_day", "per_subject_day", "open", "velocity"] = Field(
        description="velocity: passing it pauses the agent, until a person lets it go on."
    )
    kind: str | None = Field(description="Of this kind alone; null: of all its kinds together.")
    amount: str | None
    currency: str | None
    count: int | None
    minutes: int | None = Field(description="The window of a velocity; sums are over the last 24 hours.")


class LimitSetOut(LimitOut):
    used: str | int | None = Field(description="null: counted for each action, or each subject, by itself.")
    remaining: str | int | None
    resets_at: datetime | None = Field(description="When time alone frees some of it next.")


class LimitsOut(Schema):
    rate_per_minute: int
    left: LeftOut
    set: list[LimitSetOut] = Field(description="What was set for this agent, and how much of it is used.")


class AgentOut(Schema):
    agent: str
    title: str
    group: str | None
    paused: bool
    scopes: list[str]
    limits: LimitsOut


class KindOut(Schema):
    name: str
    title: str
    executors: list[str]
    params_schema: dict[str, Any]
    amount: Literal["required", "optional", "none"]
    subject: Literal["required", "derived"] = Field(description="derived: it may be left out, params name it.")
    paused: bool


class KindsOut(Schema):
    data: list[KindOut]
