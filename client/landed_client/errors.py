"""Everything that this client raises, in one tree.

Two questions decide what to do with one of these, and each class answers them: may the action have happened, and
does the very same request help? No class here is a `TimeoutError`, and none whose outcome is open has "failed" in
its name or its text: code and models that read either do the action a second time.

    LandedError
    ├── Refused                 the request can't be taken: fields
    │   └── KeyReused           the request key stands for another payload
    ├── NotAllowed              the token, its scopes, or the kind
    │   └── NotFound
    ├── NotNow                  paused, or the record has moved on
    ├── LimitExceeded
    ├── UnsettledDuplicate      the subject has an intent that is still open
    ├── AlreadyDone             the same was confirmed before
    ├── TooLate                 it may have been sent, so it can't be withdrawn
    ├── OutcomeUnknown          it may have happened: don't repeat it, ask again later
    │   ├── Held                nothing was sent, a person decides first
    │   └── MayHaveHappened     an earlier run may have done it
    ├── NotDone                 settled, and it did not happen
    │   ├── Failed
    │   └── Cancelled
    └── Unavailable             no usable answer from Landed itself
"""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any

from landed_client.intents import Intent
from landed_client.reading import time_or_none

_NOTHING: Mapping[str, Any] = MappingProxyType({})


class LandedError(Exception):
    """Whatever keeps a call from returning what it is for.

    `code`: stable, from the problem document where there was one. `message`: one plain sentence, fit for a model.
    `retryable`: whether the very same request can succeed later; it speaks of the request, never of the action.
    `problem`: the whole document. `request_key`: of the proposal in question, for `actions.find`.
    `may_be_recorded`: an earlier try of this call got no usable answer, so there may be a record all the same.
    """

    default_code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        retryable: bool = False,
        status: int | None = None,
        problem: Mapping[str, Any] = _NOTHING,
        request_key: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.retryable = retryable
        self.status = status
        self.problem = problem
        self.request_key = request_key
        self.may_be_recorded = False


# --- the request was answered, and the answer is no


class Refused(LandedError):
    """The request can't be taken as it is. `fields`: a sentence per field; `differs`: see KeyReused."""

    default_code = "invalid"

    @property
    def fields(self) -> Mapping[str, str]:
        errors = self.problem.get("errors")
        rows = [row for row in errors if isinstance(row, dict)] if isinstance(errors, list) else []
        return {str(row.get("field")): str(row.get("message")) for row in rows}

    @property
    def differs(self) -> tuple[str, ...]:
        found = self.problem.get("differs")
        return tuple(map(str, found)) if isinstance(found, list) else ()


class KeyReused(Refused):
    """The request key stands for another payload; nothing was recorded. `intent`: what it stands for."""

    default_code = "key_reused"

    @property
    def intent(self) -> Intent | None:
        return _intent_in(self.problem)


class NotAllowed(LandedError):
    """The token, its scopes, the kind, or a paused agent."""

    default_code = "not_allowed"


class NotFound(NotAllowed):
    """There is no such thing, or it belongs to somebody else."""

    default_code = "not_found"


class NotNow(LandedError):
    """Nothing was recorded or changed: something is paused, or the record has moved on meanwhile."""

    default_code = "not_now"


class LimitExceeded(LandedError):
    """A limit of this agent; nothing was recorded. `limit`, `remaining`: as the server writes them."""

    default_code = "limit_exceeded"

    @property
    def limit(self) -> Any:
        return self.problem.get("limit")

    @property
    def remaining(self) -> Any:
        return self.problem.get("remaining")

    @property
    def resets_at(self) -> datetime | None:
        return _time_in(self.problem, "resets_at")


class UnsettledDuplicate(LandedError):
    """The subject has an intent whose outcome is open; nothing was recorded, and no other wording helps.

    `intent_id` is None where the intent belongs to somebody else. `same_payload`: it asks for just the same.
    """

    default_code = "unsettled_duplicate"

    @property
    def intent_id(self) -> str | None:
        found = self.problem.get("intent_id")
        return found if isinstance(found, str) else None

    @property
    def ask_again_at(self) -> datetime | None:
        return _time_in(self.problem, "ask_again_at")

    @property
    def next_step(self) -> str:
        found = self.problem.get("next_step")
        return found if isinstance(found, str) else "wait"

    @property
    def same_payload(self) -> bool | None:
        found = self.problem.get("same_payload")
        return found if isinstance(found, bool) else None


class AlreadyDone(LandedError):
    """The same is confirmed already; nothing was recorded or sent now. `intent`: the one that did it, if visible."""

    default_code = "already_done"

    def __init__(self, message: str, *, intent: Intent | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.intent = intent or _intent_in(self.problem)


class TooLate(LandedError):
    """It may have been sent, or is withdrawn already: this can't be done to it any more."""

    default_code = "too_late"

    @property
    def intent(self) -> Intent | None:
        return _intent_in(self.problem)


# --- what became of the action


class OutcomeUnknown(LandedError):
    """Whether the action happened is not known now. Don't do it again, and don't do anything in its place.

    No subclass of TimeoutError, which frameworks take for permission to repeat. `intent` is the record as it was
    read last: ask for it again at `intent.ask_again_at`.
    """

    default_code = "outcome_unknown"

    def __init__(self, message: str, *, intent: Intent | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.intent = intent or _intent_in(self.problem)
        if self.intent is not None and self.request_key is None:
            self.request_key = self.intent.request_key


class Held(OutcomeUnknown):
    """Nothing has been sent, and nothing will be before a person approves. Proposing it again changes nothing."""

    default_code = "held"


class MayHaveHappened(OutcomeUnknown):
    """Somebody claimed this intent before, an earlier run perhaps: it may have been sent, so it was not sent now."""

    default_code = "may_have_happened"


class NotDone(LandedError):
    """Settled: the action did not happen. `intent.may_propose_again` says whether a new one is sensible."""

    default_code = "not_done"

    def __init__(self, message: str, *, intent: Intent, **more: Any) -> None:
        super().__init__(message, request_key=intent.request_key, **more)
        self.intent = intent


class Failed(NotDone):
    """It was refused, or is proven not done."""

    default_code = "failed"


class Cancelled(NotDone):
    """It was withdrawn, rejected or expired before anything was sent."""

    default_code = "cancelled"


# --- Landed itself


class Unavailable(LandedError):
    """Landed gave no usable answer for as long as it was asked.

    With `may_be_recorded` the proposal may be on record: the same `request_key` is safe to repeat, another one is
    not. `retry_after`: seconds, where the last answer said so.
    """

    default_code = "unavailable"

    def __init__(self, message: str, *, retry_after: float | None = None, **more: Any) -> None:
        super().__init__(message, **more)
        self.retry_after = retry_after


def _intent_in(problem: Mapping[str, Any]) -> Intent | None:
    found = problem.get("intent")
    return Intent.read(found) if isinstance(found, dict) else None


def _time_in(problem: Mapping[str, Any], name: str) -> datetime | None:
    return time_or_none(problem.get(name))
