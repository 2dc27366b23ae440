"""An intent as it was read. What this client doesn't know is kept, and read as: wait."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from typing import Any, Final, Literal

from landed_client.reading import mapping, text, text_or_none, time_or_none, whole

Outcome = Literal["confirmed", "failed", "cancelled", "pending"]
Step = Literal["wait", "wait_for_person", "send", "report", "done"]

_SETTLED: Final[dict[str, Outcome]] = {"confirmed": "confirmed", "failed": "failed", "cancelled": "cancelled"}
_STEPS: Final[dict[str, Step]] = {
    "wait": "wait",
    "wait_for_person": "wait_for_person",
    "send": "send",
    "report": "report",
    "done": "done",
}


@dataclass(frozen=True)
class Attempt:
    """The newest sending. `may_send` is true only for the holder of the claim token, while the lease lasts."""

    number: int
    lease_until: datetime | None
    may_send: bool

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Attempt":
        return cls(whole(body.get("number")), time_or_none(body.get("lease_until")), body.get("may_send") is True)


@dataclass(frozen=True)
class Review:
    """An open review. `purpose`: `approval` or `outcome`, the API's `for`."""

    open: bool
    purpose: str
    due_at: datetime | None

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Review":
        return cls(body.get("open") is not False, text(body.get("for")), time_or_none(body.get("due_at")))


@dataclass(frozen=True)
class Intent:
    """One recorded wish to act, as the server showed it; see API.md for what each field means.

    Amounts are decimal strings, times are aware. `status`, `next_step` and `executor` hold what the server wrote,
    known or not; decide by `outcome` and `step`, which read everything unknown as "pending" and "wait".
    `request_key` is known where this client proposed or found it. `differs`: on a replay, what was other than
    stored. `extra`: fields of a newer server.
    """

    id: str
    kind: str
    subject: str
    amount: str | None
    currency: str | None
    params: Mapping[str, Any]
    context: Mapping[str, Any]
    executor: str
    status: str
    status_reason: str
    settled: bool
    disputed: bool
    idempotency_key: str
    external_id: str | None
    settled_amount: str | None
    settled_by: str | None
    attempt_count: int
    attempt: Attempt | None
    replay_safe_until: datetime | None
    send_before: datetime | None
    next_step: str
    ask_again_at: datetime | None
    may_propose_again: bool
    message: str
    customer_message: str
    review: Review | None
    look_alike_of: str | None
    sequence: int
    created_at: datetime | None
    updated_at: datetime | None
    settled_at: datetime | None
    differs: tuple[str, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    request_key: str | None = None
    replayed: bool = False

    @classmethod
    def read(cls, body: Mapping[str, Any], *, request_key: str | None = None, replayed: bool = False) -> "Intent":
        """The intent in a JSON object. Raises ValueError when it is none: without an id or a status."""
        if not isinstance(body.get("id"), str) or not isinstance(body.get("status"), str):
            raise ValueError("This is not an intent.")
        found = _fields_of(body)
        found["extra"] = {name: value for name, value in body.items() if name not in _FROM_SERVER}
        return cls(**found, request_key=request_key, replayed=replayed)

    @property
    def outcome(self) -> Outcome:
        """What became of it. `pending` covers everything that is not established, and all that is not understood."""
        if not self.settled or self.disputed:
            return "pending"
        return _SETTLED.get(self.status, "pending")

    @property
    def step(self) -> Step:
        """What to do next; `wait` for a step that this client doesn't know."""
        return _STEPS.get(self.next_step, "wait")

    @property
    def done(self) -> bool:
        """Whether it is established what became of it, so that asking again shows nothing new."""
        return self.outcome != "pending"

    def under(self, request_key: str | None) -> "Intent":
        """The same, known by this request key."""
        return self if request_key is None else replace(self, request_key=request_key)


def _fields_of(body: Mapping[str, Any]) -> dict[str, Any]:
    attempt, review, differs = body.get("attempt"), body.get("review"), body.get("differs")
    times = ("replay_safe_until", "send_before", "ask_again_at", "created_at", "updated_at", "settled_at")
    optional = ("amount", "currency", "external_id", "settled_amount", "settled_by", "look_alike_of")
    texts = ("id", "kind", "subject", "executor", "status", "status_reason", "idempotency_key")
    return {
        **{name: text(body.get(name)) for name in (*texts, "message", "customer_message")},
        **{name: text_or_none(body.get(name)) for name in optional},
        **{name: time_or_none(body.get(name)) for name in times},
        **{name: body.get(name) is True for name in ("settled", "disputed", "may_propose_again")},
        **{name: mapping(body.get(name)) for name in ("params", "context")},
        **{name: whole(body.get(name)) for name in ("attempt_count", "sequence")},
        "next_step": text(body.get("next_step"), "wait"),
        "attempt": Attempt.read(attempt) if isinstance(attempt, dict) else None,
        "review": Review.read(review) if isinstance(review, dict) else None,
        "differs": tuple(map(str, differs)) if isinstance(differs, list) else (),
    }


_FROM_SERVER: Final = frozenset(one.name for one in fields(Intent)) - {"extra", "request_key", "replayed"}


@dataclass(frozen=True)
class Page:
    """Intents, newest first. `next_cursor` goes into the next `list` as `cursor`; None: there are no more."""

    data: tuple[Intent, ...]
    next_cursor: str | None


@dataclass(frozen=True)
class Event:
    """One change of one intent. `position` is global and in commit order; `sequence` is the intent's own.

    `status`: the intent's, as it was then; None of what doesn't change it. One that isn't known means "wait".
    """

    position: int
    type: str
    at: datetime | None
    intent_id: str
    sequence: int
    status: str | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def read(cls, body: Mapping[str, Any]) -> "Event":
        known = ("position", "type", "at", "intent", "sequence", "status")
        return cls(
            position=whole(body.get("position")),
            type=text(body.get("type")),
            at=time_or_none(body.get("at")),
            intent_id=text(body.get("intent")),
            sequence=whole(body.get("sequence")),
            status=text(body.get("status")) or None,
            extra={name: value for name, value in body.items() if name not in known},
        )


@dataclass(frozen=True)
class Events:
    """What changed, in order. `next`: the position to ask on from; `has_more`: there is more by now."""

    data: tuple[Event, ...]
    next: int
    has_more: bool = False


@dataclass(frozen=True)
class Claim:
    """An attempt that was claimed, and the key to send it with."""

    attempt: Attempt
    idempotency_key: str
