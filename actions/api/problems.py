"""Every refusal as `application/problem+json` (RFC 9457), from the one tree of errors.

`HTTP_STATUS` is the only place where an error meets an HTTP status; `codes()` is what the documents' table is
made from.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse

from actions import errors, times
from actions.api import answers, showing
from actions.errors import LandedError
from actions.guidance import next_step_after_refusal
from actions.models import Agent, Intent

MEDIA_TYPE: Final = "application/problem+json"
# What a caller sent comes back in our sentences; a megabyte of it helps nobody.
_MAX_DETAIL, _MAX_MESSAGE, _MAX_ERRORS = 1_000, 300, 50


# --- what only HTTP can get wrong


class BadRequest(LandedError):
    code, title = "bad_request", "The request is not understood."


class NoSuchMethod(LandedError):
    code, title = "method_not_allowed", "This address doesn't take this method."


class BodyTooLarge(LandedError):
    code, title = "body_too_large", "The body is larger than 1 MiB."


class UnsupportedMedia(LandedError):
    code, title = "unsupported_media_type", "The body must be application/json in UTF-8."


class Internal(LandedError):
    code, title, retryable = (
        "internal",
        "Something broke here; whether it was recorded shows when you ask again with the same Idempotency-Key.",
        True,
    )


HTTP_STATUS: Final[Mapping[type[LandedError], int]] = {
    LandedError: 400,
    BadRequest: 400,
    errors.BadJsonBody: 400,
    errors.MissingIdempotencyKey: 400,
    errors.BadIdempotencyKey: 400,
    errors.BadQuery: 400,
    errors.Unauthenticated: 401,
    errors.NotAllowed: 403,
    errors.NotFound: 404,
    NoSuchMethod: 405,
    errors.UnsettledDuplicate: 409,
    errors.AlreadyDone: 409,
    errors.LimitExceeded: 409,
    # Not 503: nothing is broken, and clients that repeat every 5xx at once would hammer a closed door.
    errors.KindPaused: 409,
    errors.DownstreamPaused: 409,
    errors.TooLate: 409,
    errors.MayHaveHappened: 409,
    errors.LeaseOver: 409,
    errors.ForeignReport: 409,
    errors.NotApproved: 409,
    errors.NotExecutedByCaller: 409,
    errors.InsideTransaction: 409,
    errors.StaleTransition: 409,
    errors.ForbiddenTransition: 409,
    errors.ReviewClosed: 409,
    errors.ReviewHeld: 409,
    errors.SeenIsStale: 409,
    BodyTooLarge: 413,
    UnsupportedMedia: 415,
    errors.KeyReused: 422,
    errors.Invalid: 422,
    errors.BadDecision: 422,
    errors.RateLimited: 429,
    Internal: 500,
    errors.Unavailable: 503,
}

# Seconds; an error's own `retry_after` goes first.
_RETRY_AFTER: Final[Mapping[type[LandedError], int]] = {
    errors.Unavailable: 2,
    errors.RateLimited: 10,
    errors.KindPaused: 60,
    errors.DownstreamPaused: 60,
}


def status_of(kind: type[LandedError]) -> int:
    """The HTTP status of an error class: its own, or that of the nearest class above it."""
    return next(HTTP_STATUS[above] for above in kind.__mro__ if above in HTTP_STATUS)


@dataclass(frozen=True)
class Code:
    """One row of the documented table."""

    code: str
    status: int
    title: str
    retryable: bool


def kinds(root: type[LandedError] = LandedError) -> list[type[LandedError]]:
    """Every error class of this code base below `root`, each before those that derive from it."""
    found = []
    for kind in root.__subclasses__():
        if kind.__module__.split(".")[0] in ("actions", "reconciliation"):
            found += [kind, *kinds(kind)]
    return list(dict.fromkeys(found))


def codes() -> list[Code]:
    """All codes that the API can answer with, by status and code."""
    rows = [Code(kind.code, status_of(kind), kind.title, kind.retryable) for kind in kinds()]
    return sorted(rows, key=lambda row: (row.status, row.code))


# --- answering


def response(error: LandedError, *, viewer: Agent | None = None) -> HttpResponse:
    """The answer to `error` for `viewer` (None: nobody is known, so nothing of any intent is shown)."""
    status = status_of(type(error))
    # The standard's own members last: no detail of an error may pass for them.
    body = _extensions(error, viewer) | {
        "type": f"urn:landed:problem:{error.code}",
        "title": error.title,
        "status": status,
        "detail": _clip(error.message, _MAX_DETAIL),
        "code": error.code,
        "retryable": error.retryable,
    }
    answer = answers.json_response(body, status=status, content_type=MEDIA_TYPE)
    if isinstance(error, errors.Unauthenticated):
        answer["WWW-Authenticate"] = "Bearer"
    after = error.details.get("retry_after", _RETRY_AFTER.get(type(error)))
    if after is not None:
        answer["Retry-After"] = str(after)
    return answer


def of_http(status: int) -> LandedError:
    """The error for a bare HTTP status that a framework answered with."""
    known = {400: BadRequest, 401: errors.Unauthenticated, 403: errors.NotAllowed, 404: errors.NotFound}
    known |= {405: NoSuchMethod, 413: BodyTooLarge, 415: UnsupportedMedia, 429: errors.RateLimited}
    known |= {422: errors.BadDecision, 503: errors.Unavailable}
    return known.get(status, Internal if status >= HTTPStatus.INTERNAL_SERVER_ERROR else BadRequest)()


def _extensions(error: LandedError, viewer: Agent | None) -> dict[str, Any]:
    found = {name: _plain(value) for name, value in error.details.items() if _is_plain(value)}
    found.pop("retry_after", None)
    intent = error.details.get("intent")
    if isinstance(intent, Intent):
        found |= _about(error, intent, viewer)
    return found


def _about(error: LandedError, intent: Intent, viewer: Agent | None) -> dict[str, Any]:
    """What `viewer` may learn of the intent that an error is about."""
    visible = viewer is not None and showing.may_see(viewer, intent.agent)
    if isinstance(error, errors.UnsettledDuplicate):
        at = showing.situation(intent, now=times.now(), viewer=viewer)
        found = {
            "ask_again_at": answers.time_text(showing.when_to_ask(at)),
            "next_step": next_step_after_refusal(at).value,
        }
        if visible:
            found |= {"intent_id": str(intent.pk), "intent_url": showing.url_of(intent)}
        return found
    if not visible:
        return {}
    shown = showing.intent_json(intent, now=times.now(), viewer=viewer)
    if isinstance(error, errors.NotApproved | errors.MayHaveHappened):
        return {"intent": shown, "next_step": shown["next_step"], "ask_again_at": shown["ask_again_at"]}
    return {"intent": shown}


def _is_plain(value: Any) -> bool:
    """Model objects and whatever else an error carries for other readers stays inside."""
    if isinstance(value, list | tuple):
        return all(_is_plain(one) for one in value)
    if isinstance(value, dict):
        return all(_is_plain(one) for one in value.values())
    return value is None or isinstance(value, str | int | datetime | UUID)


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return _clip(str(value), _MAX_MESSAGE)
    if isinstance(value, datetime):
        return answers.time_text(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value[:_MAX_ERRORS]]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


def _clip(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def viewer_of(request: HttpRequest) -> Agent | None:
    """Whose token this request showed; None before that is known."""
    agent = getattr(getattr(request, "auth", None), "agent", None)
    return agent if isinstance(agent, Agent) else None
