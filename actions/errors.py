"""One tree of errors with stable codes. The API and the pages map from here, in one place each. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any


class LandedError(Exception):
    """Anything that Landed refuses.

    `code` is stable and documented; `message` is one sentence for a person or a model; `details` are plain JSON
    values; `retryable` speaks of the request: whether the very same one can succeed later.
    """

    code = "error"
    title = "Refused"
    retryable = False

    def __init__(self, message: str = "", **details: Any) -> None:
        super().__init__(message or self.title)
        self.message = message or self.title
        self.details: Mapping[str, Any] = details


# Who asks


class Unauthenticated(LandedError):
    code, title = "unauthenticated", "No valid token was sent."


class NotAllowed(LandedError):
    code, title = "not_allowed", "This is not allowed."


class ScopeMissing(NotAllowed):
    code, title = "scope_missing", "This token lacks the scope."


class KindNotAllowed(NotAllowed):
    code, title = "kind_not_allowed", "This agent may not propose this kind."


class AgentPaused(NotAllowed):
    code, title = "agent_paused", "This agent is paused; nothing was recorded."


class PersonNotAllowed(NotAllowed):
    code, title = "person_not_allowed", "You don't have the permission for this."


class NotFound(LandedError):
    code, title = "not_found", "There is no such thing, or it is not yours to see."


# What is asked


class BadJsonBody(LandedError):
    code, title = "bad_json", "The body is not JSON with exactly one meaning."


class MissingIdempotencyKey(LandedError):
    code, title = "missing_idempotency_key", "The header Idempotency-Key is missing."


class BadIdempotencyKey(LandedError):
    code, title = "bad_idempotency_key", "The Idempotency-Key must be 1 to 255 visible ASCII characters."


class BadQuery(LandedError):
    code, title = "bad_query", "The query is not understood."


class Invalid(LandedError):
    """Fields that can't be taken: `errors` is a list of `{"field", "message"}`."""

    code, title = "invalid", "Some fields can't be taken."

    def __init__(self, errors: list[dict[str, str]]) -> None:
        super().__init__(" ".join(f"{e['field']}: {e['message']}" for e in errors), errors=errors)

    @classmethod
    def field(cls, field: str, message: str) -> "Invalid":
        return cls([{"field": field, "message": message}])


class KeyReused(LandedError):
    code, title = "key_reused", "This Idempotency-Key was used with another payload; nothing was sent."


class UnsettledDuplicate(LandedError):
    code, title = "unsettled_duplicate", "The subject has an intent that is not settled yet."


class AlreadyDone(LandedError):
    code, title = "already_done", "The same was confirmed a short time ago."


class LimitExceeded(LandedError):
    """A limit of the agent: `limit` (which one), `remaining` of it (a decimal string, or how many), `resets_at`."""

    code, title = "limit_exceeded", "A limit of this agent would be exceeded; nothing was recorded."

    @property
    def limit(self) -> Mapping[str, Any] | None:
        """`name`, and what it is: `amount` and `currency`, or `count` (with `minutes` for a velocity); `kind`."""
        return self.details.get("limit")

    @property
    def remaining(self) -> str | int | None:
        return self.details.get("remaining")

    @property
    def resets_at(self) -> datetime | None:
        """When the same proposal fits, if nothing else uses the limit up before; None: not by waiting alone."""
        return self.details.get("resets_at")


class KindPaused(LandedError):
    code, title, retryable = "kind_paused", "This kind takes no proposals at the moment.", True


class DownstreamPaused(LandedError):
    code, title, retryable = "downstream_paused", "Nothing is sent to this downstream at the moment.", True


# What has happened meanwhile


class TooLate(LandedError):
    code, title = "too_late", "It may have been sent; it can't be withdrawn any more."


class MayHaveHappened(LandedError):
    code, title = "may_have_happened", "Somebody else claimed this intent; it may have been sent."


class PastSendBefore(MayHaveHappened):
    code, title = "past_send_before", "Its time to be sent is over; it will be withdrawn."


class LeaseOver(LandedError):
    code, title = "lease_over", "The attempt is closed or its lease is over; nobody may send it any more."


class ForeignReport(LandedError):
    code, title = (
        "foreign_report",
        "Another token claimed this attempt: the report is kept as evidence and speaks for nothing.",
    )


class NotApproved(LandedError):
    code, title = "not_approved", "A person has to approve this intent before it may be sent."


class NotExecutedByCaller(LandedError):
    code, title = "not_executed_by_caller", "Landed sends this intent itself; reports on it are not taken."


class InsideTransaction(LandedError):
    code, title = (
        "inside_transaction",
        "An intent that the caller carries out can't be recorded inside an open database transaction: a rollback "
        "would erase the record of what was sent.",
    )


class StaleTransition(LandedError):
    code, title = "stale", "The intent has changed meanwhile; nothing was done."


class ForbiddenTransition(LandedError):
    code, title = "forbidden_transition", "This status can't follow from that one in this role."


class ReviewClosed(LandedError):
    code, title = "review_closed", "The case was closed meanwhile; nothing was decided."


class ReviewHeld(LandedError):
    code, title = "review_held", "Somebody else holds this case."


class SeenIsStale(LandedError):
    """A decision was made on facts that have changed since the page was opened."""

    code, title = "seen_is_stale", "The facts have changed since you opened the page; nothing was decided."


class BadDecision(LandedError):
    code, title = "bad_decision", "This can't be decided here."


class Unavailable(LandedError):
    code, title, retryable = "unavailable", "Nothing was recorded; ask again with the same key.", True


class RateLimited(LandedError):
    code, title, retryable = "rate_limited", "Too many requests with this token.", True
