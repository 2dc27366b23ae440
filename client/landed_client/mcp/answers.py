"""What each tool gives back: the structured part, made of what Landed said. Texts of others stand here, as data."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, Literal

from pydantic import BaseModel, Field, ValidationError

from landed_client import errors
from landed_client.intents import Intent, Page
from landed_client.mcp import texts
from landed_client.mcp.texts import Facts

Recorded = Literal["yes", "no", "maybe"]
Result = Literal[
    "intent",
    "unsettled_duplicate",
    "already_done",
    "key_reused",
    "limit_exceeded",
    "too_late",
    "not_now",
    "not_known",
    "invalid",
    "not_allowed",
    "not_found",
    "unavailable",
]

# All others are answers about an action, also those that say no; a model that reads "error" in their place does the
# action once more. These four are not: the call has to be made differently, by somebody else, or once more as it is.
ERRORS: Final[frozenset[str]] = frozenset({"invalid", "not_allowed", "not_found", "unavailable"})

_RESULTS: Final[tuple[tuple[type[errors.LandedError], Result], ...]] = (
    (errors.UnsettledDuplicate, "unsettled_duplicate"),
    (errors.AlreadyDone, "already_done"),
    (errors.KeyReused, "key_reused"),
    (errors.LimitExceeded, "limit_exceeded"),
    (errors.TooLate, "too_late"),
    (errors.NotNow, "not_now"),
    (errors.NotFound, "not_found"),
    (errors.NotAllowed, "not_allowed"),
    (errors.Refused, "invalid"),
    (errors.Unavailable, "unavailable"),
)


def result_of(error: errors.LandedError) -> Result:
    """`not_known` for what is not understood: it is read as open."""
    return next((result for kind, result in _RESULTS if isinstance(error, kind)), "not_known")


class Action(BaseModel):
    """One action as Landed shows it. `outcome` is what is established; `pending` is not "no"."""

    id: str
    kind: str
    subject: str
    amount: str | None
    currency: str | None
    status: str = Field(
        description="held, recorded, submitted, unknown, confirmed, failed, cancelled; or a newer one"
    )
    status_reason: str
    outcome: Literal["pending", "confirmed", "failed", "cancelled"]
    disputed: bool
    next_step: Literal["wait", "wait_for_person", "send", "report", "done"]
    ask_again_at: datetime | None
    may_propose_again: bool
    review: str | None = Field(description="what a person is asked: `approval` or `outcome`; null when nobody is")
    message: str
    customer_message: str
    external_id: str | None
    settled_amount: str | None
    created_at: datetime | None
    updated_at: datetime | None
    settled_at: datetime | None

    @classmethod
    def of(cls, intent: Intent) -> "Action":
        review = intent.review.purpose if intent.review is not None and intent.review.open else None
        return cls.model_validate(
            {name: getattr(intent, name) for name in _SAME_NAME}
            | {"outcome": intent.outcome, "next_step": intent.step, "review": review}
        )


_SAME_NAME = frozenset(Action.model_fields) - {"outcome", "next_step", "review"}


class Problem(BaseModel):
    field: str
    message: str


class Answer(BaseModel):
    """What came of a call about one action.

    `result`: `intent`, or why there is none, with the server's own `code`. `recorded`: whether this action is on
    record. `request_key`: of this proposal, for calling with the very same arguments again. `intent`: the action, or
    the one in its way.
    """

    result: Result
    what_to_do: str
    recorded: Recorded
    code: str | None = None
    intent: Action | None = None
    request_key: str | None = None
    replayed: bool = False
    same_payload: bool | None = None
    ask_again_at: datetime | None = None
    limit: str | None = None
    remaining: str | None = None
    resets_at: datetime | None = None
    problems: list[Problem] | None = None


class ActionList(BaseModel):
    """Open actions, newest first. `actions` is null when the list could not be read, which says nothing."""

    result: Literal["actions", "invalid", "not_allowed", "unavailable"]
    what_to_do: str
    code: str | None = None
    actions: list[Action] | None = None
    next_cursor: str | None = None
    problems: list[Problem] | None = None


# --- answers with an action


def shown(intent: Intent) -> Answer:
    return Answer(
        result="intent",
        what_to_do=texts.about(Facts.of(intent)),
        recorded="yes",
        intent=Action.of(intent),
        ask_again_at=intent.ask_again_at,
    )


def proposed(intent: Intent, key: str) -> Answer:
    text = texts.proposed(Facts.of(intent), replayed=intent.replayed)
    return shown(intent).model_copy(update={"what_to_do": text, "request_key": key, "replayed": intent.replayed})


def listed(page: Page) -> ActionList:
    return ActionList(
        result="actions",
        what_to_do=texts.open_ones(len(page.data), more=page.next_cursor is not None),
        actions=[Action.of(intent) for intent in page.data],
        next_cursor=page.next_cursor,
    )


def not_listed(error: errors.LandedError) -> ActionList:
    """`actions` stays null: an empty list would say that nothing is open."""
    if isinstance(error, errors.Refused):
        text = texts.NOT_LISTED
        return ActionList(result="invalid", what_to_do=text, code=error.code, problems=_problems(error))
    if isinstance(error, errors.NotAllowed):
        return ActionList(result="not_allowed", what_to_do=texts.MAY_NOT_READ, code=error.code)
    return ActionList(result="unavailable", what_to_do=texts.UNREADABLE, code=error.code)


# --- answers without one


def refused(error: errors.LandedError, now: Intent | None, *, key: str | None) -> Answer:
    """`now`: the action that this is about, read afterwards, if there is one to be seen."""
    facts = None if now is None else Facts.of(now)
    answer = Answer(
        result=result_of(error),
        code=error.code,
        what_to_do=_text(error, facts),
        recorded="maybe" if error.may_be_recorded else "no",
        intent=None if now is None else Action.of(now),
        request_key=key,
        ask_again_at=None if now is None else now.ask_again_at,
    )
    return answer.model_copy(update=_details(error))


def _text(error: errors.LandedError, now: Facts | None) -> str:
    if isinstance(error, errors.UnsettledDuplicate):
        return texts.duplicate(now, step=error.next_step, ask_again_at=error.ask_again_at)
    if isinstance(error, errors.TooLate):
        return texts.too_late(now)
    return texts.refusal(error)


def _details(error: errors.LandedError) -> dict[str, Any]:
    if isinstance(error, errors.UnsettledDuplicate):
        return {"same_payload": error.same_payload} | (
            {"ask_again_at": error.ask_again_at} if error.ask_again_at is not None else {}
        )
    if isinstance(error, errors.LimitExceeded):
        limits = {"limit": error.limit, "remaining": error.remaining}
        return {name: None if value is None else str(value) for name, value in limits.items()} | {
            "resets_at": error.resets_at
        }
    return {"problems": _problems(error)}


def _problems(error: errors.LandedError) -> list[Problem] | None:
    if not isinstance(error, errors.Refused) or not error.fields:
        return None
    return [Problem(field=field, message=text) for field, text in error.fields.items()]


def unread(error: errors.LandedError) -> Answer:
    """For a record that was not shown, which says nothing about what stands in it."""
    text = {
        "not_found": texts.NOT_FOUND,
        "not_allowed": texts.MAY_NOT_READ,
        "unavailable": texts.UNREADABLE,
    }.get(result_of(error), texts.NOT_NOW)
    return Answer(
        result=result_of(error), what_to_do=text, recorded="maybe", code=error.code, problems=_problems(error)
    )


def unavailable(text: str, *, recorded: Recorded, key: str | None = None) -> Answer:
    return Answer(result="unavailable", what_to_do=text, recorded=recorded, request_key=key)


def problems_of(error: ValidationError) -> list[Problem]:
    """Which arguments, and why; without what was in them."""
    rows: Sequence[Any] = error.errors(include_url=False, include_context=False, include_input=False)
    return [Problem(field=".".join(map(str, row["loc"])), message=row["msg"]) for row in rows]


def invalid(problems: list[Problem]) -> Answer:
    return Answer(result="invalid", what_to_do=texts.INVALID, recorded="no", problems=problems)
