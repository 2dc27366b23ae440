"""The frame of every page: who may come, who may act, and what every template is told."""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Concatenate, ParamSpec, cast
from urllib.parse import urlsplit

from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.shortcuts import render
from django.urls import Resolver404, resolve, reverse
from django_htmx.http import HttpResponseClientRedirect
from django_htmx.middleware import HtmxDetails

from actions import times
from reconciliation.reviews import people
from reconciliation.views import watching

P = ParamSpec("P")

NO_DESK = "Your account has no role at the desk. Ask an administrator for one."
READ_ONLY = "Your role reads everything and decides nothing, so nothing was changed."


class DeskRequest(HttpRequest):
    """A request of somebody who is logged in and may be here."""

    user: User
    htmx: HtmxDetails


PageView = Callable[Concatenate[DeskRequest, P], HttpResponse]
View = Callable[Concatenate[HttpRequest, P], HttpResponse]


def page(view: PageView[P]) -> View[P]:
    """A page: GET only, and so changes nothing."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(["GET", "HEAD"])
        if not request.user.is_authenticated:
            return _login(request, back_to=request.get_full_path())
        if not people.may_read(request.user):
            raise PermissionDenied(NO_DESK)
        return _private(view(cast(DeskRequest, request), *args, **kwargs))

    guarded.is_page = True  # type: ignore[attr-defined]
    return cast(View[P], guarded)


def action(view: PageView[P]) -> View[P]:
    """Something that a person does: POST only, and only for those who may decide."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.is_authenticated:
            return _login(request, back_to=_page_of(kwargs))
        user = request.user
        if not people.may_decide(user):
            raise PermissionDenied(READ_ONLY if people.may_read(user) else NO_DESK)
        return _private(view(cast(DeskRequest, request), *args, **kwargs))

    return cast(View[P], guarded)


def own(view: PageView[P]) -> View[P]:
    """What somebody keeps for themselves alone, and that decides nothing: POST only, for everybody who may read."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
        if request.method != "POST":
            return HttpResponseNotAllowed(["POST"])
        if not request.user.is_authenticated:
            return _login(request, back_to=_page_of(kwargs))
        if not people.may_read(request.user):
            raise PermissionDenied(NO_DESK)
        return _private(view(cast(DeskRequest, request), *args, **kwargs))

    return cast(View[P], guarded)


def page_at(address: str) -> str:
    """Where somebody can be led who wanted to go to `address`: there; to the case or the queue, where it is something
    that people do at the desk and no page. Other parts' addresses, and those that are none, stay as they are."""
    try:
        found = resolve(urlsplit(address).path)
    except (Resolver404, ValueError):
        return address
    ours = found.func.__module__.startswith("reconciliation.views.")
    return _page_of(found.kwargs) if ours and not hasattr(found.func, "is_page") else address


def show(request: DeskRequest, template: str, context: Mapping[str, Any], *, status: int = 200) -> HttpResponse:
    """Renders a page with what every page is told: the database's time, and whether this person may act."""
    common: dict[str, Any] = {"may_decide": people.may_decide(request.user)}
    if "now" not in context:
        common["now"] = times.now()
    if not request.htmx or request.htmx.boosted:
        # A whole page, not a piece of one: what was decided a moment ago can be taken back from it.
        common["undos"] = watching.told(request)
    return render(request, template, common | dict(context), status=status)


def _page_of(kwargs: Mapping[str, Any]) -> str:
    return reverse("case", args=[kwargs["review_id"]]) if "review_id" in kwargs else reverse("queue")


def _login(request: HttpRequest, *, back_to: str) -> HttpResponse:
    to_login = redirect_to_login(back_to, reverse("login"))
    # htmx would follow a redirect silently and put the login form into the middle of a page.
    return HttpResponseClientRedirect(to_login.url) if cast(DeskRequest, request).htmx else to_login


def _private(response: HttpResponse) -> HttpResponse:
    """Neither a proxy nor the browser's history keeps what a desk page shows."""
    response.headers.setdefault("Cache-Control", "private, no-store")
    return response
