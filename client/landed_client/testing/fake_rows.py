"""The fake's records: what an intent is, and how it is shown, in the server's wording."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

SETTLED: Final = ("confirmed", "failed", "cancelled")

_MESSAGES: Final[Mapping[str, str]] = {
    "held": "It is recorded and has not been sent: a person has to approve it first. Don't propose it again; "
    "end your turn and read this record at the time given.",
    "recorded": "It is recorded and nothing has been sent yet. Read this record again to see what came of it.",
    "submitted": "It is being sent; whether it happens is not known yet. Don't propose it again: a repeat will be "
    "refused.",
    "unknown": "It may have happened: it was sent and no usable answer came. A repeat will be refused. "
    "The books are being looked into, and this record will show what they say.",
    "confirmed": "It is done and confirmed. Don't propose it again.",
    "failed": "It failed and had no effect. It may be proposed again, under a new Idempotency-Key.",
    "cancelled": "It was withdrawn; nothing was sent.",
}
_FOR_CUSTOMER: Final[Mapping[str, str]] = {
    "confirmed": "Your request has been completed.",
    "failed": "Your request could not be completed; nothing was changed.",
    "cancelled": "Your request was withdrawn; nothing was changed.",
}
_IN_WORK: Final = "Your request is being processed."


@dataclass
class Step:
    """What becomes of it, and at what second of the fake's time."""

    at: float
    status: str


@dataclass
class Row:
    """One intent. Times are seconds of the fake's clock."""

    kind: str
    subject: str
    amount: str | None
    currency: str | None
    params: Mapping[str, Any]
    context: Mapping[str, Any]
    note: str
    executor: str
    request_key: str
    created: float
    status: str = "recorded"
    reason: str = "recorded"
    id: str = field(default_factory=lambda: str(uuid4()))
    key: str = field(default_factory=lambda: str(uuid4()))
    claim_token: str | None = None
    lease_until: float = 0.0
    attempts: int = 0
    external_id: str | None = None
    settled_by: str | None = None
    settled: float | None = None
    may_propose_again: bool = False
    updated: float = 0.0
    sequence: int = 1
    steps: list[Step] = field(default_factory=list)

    @property
    def family(self) -> str:
        return self.subject.split("/", 1)[0]

    @property
    def open(self) -> bool:
        return self.status not in SETTLED

    @property
    def payload(self) -> tuple[Any, ...]:
        return (self.kind, self.subject, self.amount, self.currency, dict(self.params), self.executor)

    def move(self, status: str, now: float, *, reason: str) -> None:
        self.status, self.reason, self.updated = status, reason, now
        self.sequence += 1
        if status in SETTLED:
            self.settled, self.steps = now, []
            self.may_propose_again = status == "failed" or reason == "cancelled_by_agent"

    def may_send(self, claim_token: str | None, now: float) -> bool:
        mine = claim_token is not None and claim_token == self.claim_token
        return mine and self.status == "submitted" and now < self.lease_until

    def next_step(self, claim_token: str | None, now: float) -> str:
        if not self.open:
            return "done"
        if self.status == "held":
            return "wait_for_person"
        if self.executor == "caller" and (self.status == "recorded" or self.may_send(claim_token, now)):
            return "send"
        return "report" if self.executor == "caller" and self.status == "submitted" else "wait"

    def ask_again(self, now: float) -> float | None:
        if not self.open:
            return None
        return now + 300 if self.status == "held" else max(now + 1, self.steps[0].at if self.steps else now + 2)


def show(row: Row, now: float, *, claim_token: str | None = None) -> dict[str, Any]:
    """The intent as the API writes it."""
    held = row.status == "held"
    return {
        "id": row.id,
        "kind": row.kind,
        "subject": row.subject,
        "amount": row.amount,
        "currency": row.currency,
        "params": dict(row.params),
        "context": dict(row.context),
        "executor": row.executor,
        "status": row.status,
        "status_reason": row.reason,
        "settled": not row.open,
        "disputed": False,
        "idempotency_key": row.key,
        "external_id": row.external_id,
        "settled_amount": row.amount if row.status == "confirmed" else None,
        "settled_by": row.settled_by,
        "attempt_count": row.attempts,
        "attempt": _attempt(row, claim_token, now) if row.attempts else None,
        "replay_safe_until": None,
        "send_before": time_text(row.created + 86_400),
        "next_step": row.next_step(claim_token, now),
        "ask_again_at": time_text(row.ask_again(now)),
        "may_propose_again": row.may_propose_again,
        "message": _message(row, claim_token, now),
        "customer_message": _FOR_CUSTOMER.get(row.status, _IN_WORK),
        "review": {"open": True, "for": "approval", "due_at": time_text(row.created + 3_600)} if held else None,
        "look_alike_of": None,
        "sequence": row.sequence,
        "created_at": time_text(row.created),
        "updated_at": time_text(row.updated or row.created),
        "settled_at": time_text(row.settled),
        "erased_at": None,
    }


def _message(row: Row, claim_token: str | None, now: float) -> str:
    if row.may_send(claim_token, now):
        return "You may send it now, with its idempotency key and no other; then report what came of it."
    if row.status == "cancelled" and row.reason == "rejected":
        return "A person decided against it; nothing was sent. Don't propose it again."
    return _MESSAGES[row.status]


def _attempt(row: Row, claim_token: str | None, now: float) -> dict[str, Any]:
    return {
        "number": row.attempts,
        "lease_until": time_text(row.lease_until),
        "may_send": row.may_send(claim_token, now),
    }


_EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


def time_text(seconds: float | None) -> str | None:
    return None if seconds is None else (_EPOCH + timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")


def date_header(seconds: float) -> str:
    return (_EPOCH + timedelta(seconds=seconds)).strftime("%a, %d %b %Y %H:%M:%S GMT")
