"""Turns whatever is raised or answered under the API's addresses into a problem.

Three doors, one form: exceptions inside ninja's operations, answers that ninja makes itself (405), and what Django
answers before or beside any route (no such address, a host that isn't ours, a broken middleware).
"""

import logging
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import InterfaceError, OperationalError
from django.http import Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.urls import URLPattern, URLResolver
from django.views import defaults
from ninja import NinjaAPI
from ninja.errors import HttpError
from ninja.errors import ValidationError as NinjaInvalid

from actions.api import problems
from actions.errors import Invalid, LandedError, NotAllowed, NotFound, Unavailable

log = logging.getLogger(__name__)

_PREFIX: Final = "/api/"


def install(api: NinjaAPI) -> None:
    """Answers every exception of `api`'s operations as a problem."""
    for kind, handler in _HANDLERS.items():
        api.add_exception_handler(kind, handler)


def _landed(request: HttpRequest, error: LandedError) -> HttpResponse:
    return problems.response(error, viewer=problems.viewer_of(request))


def _database_away(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("the database failed %s %s: %s", request.method, request.path, error)
    # Whether a commit got through can't be told from here; the request key makes asking again harmless.
    return problems.response(
        Unavailable(
            "The database can't be reached. Ask again with the same Idempotency-Key: "
            "if it was recorded after all, you get that record."
        )
    )


def _http_error(request: HttpRequest, error: HttpError) -> HttpResponse:
    return problems.response(problems.of_http(error.status_code))


def _invalid(request: HttpRequest, error: NinjaInvalid) -> HttpResponse:
    found = [{"field": str(e["loc"][-1]), "message": str(e["msg"])} for e in error.errors]
    return problems.response(Invalid(found))


def _broken(request: HttpRequest, error: Exception) -> HttpResponse:
    log.error("unhandled in %s %s", request.method, request.path, exc_info=error)
    return problems.response(problems.Internal())


def _always(error: type[LandedError]) -> Callable[[HttpRequest, Exception], HttpResponse]:
    return lambda request, _: problems.response(error())


_HANDLERS: Final[dict[type[Exception], Callable[[HttpRequest, Any], HttpResponse]]] = {
    LandedError: _landed,
    OperationalError: _database_away,
    InterfaceError: _database_away,
    HttpError: _http_error,
    NinjaInvalid: _invalid,
    Http404: _always(NotFound),
    PermissionDenied: _always(NotAllowed),
    RequestDataTooBig: _always(problems.BodyTooLarge),
    SuspiciousOperation: _always(problems.BadRequest),
    UnreadablePostError: _always(problems.BadRequest),
    Exception: _broken,
}


# --- answers that ninja makes itself


def as_problems(patterns: Sequence[URLPattern | URLResolver]) -> None:
    """Lets each of these addresses answer as a problem where its view answers with a bare error status."""
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            pattern.callback = _in_problems(pattern.callback)


def _in_problems(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @wraps(view)  # keeps csrf_exempt: bearer tokens are not sent by browsers on their own
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        found = view(request, *args, **kwargs)
        if found.status_code < 400 or found.get("Content-Type", "").startswith(problems.MEDIA_TYPE):
            return found
        made = problems.response(problems.of_http(found.status_code))
        if "Allow" in found:
            made["Allow"] = found["Allow"]
        return made

    return answer


# --- what Django answers beside any route; named in config/urls.py


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _for_api(request, problems.BadRequest()) or defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _for_api(request, NotAllowed()) or defaults.permission_denied(request, exception)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return _for_api(request, NotFound("There is no such address.")) or defaults.page_not_found(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    return _for_api(request, problems.Internal()) or defaults.server_error(request)


def _for_api(request: HttpRequest, error: LandedError) -> HttpResponse | None:
    return problems.response(error) if request.path_info.startswith(_PREFIX) else None
