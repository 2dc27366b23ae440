"""Who reads what is answered, and how they like it."""

from collections.abc import Callable
from functools import cache

from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse

from reconciliation.models import Preferences
from reconciliation.reviews import preferences
from reconciliation.views import comfort


def as_the_reader_likes(get_response: Callable[[HttpRequest], HttpResponse]) -> Callable[[HttpRequest], HttpResponse]:
    """Times, amounts and the theme are the reader's own: `request.likes`, called, tells templates."""

    def answer(request: HttpRequest) -> HttpResponse:
        @cache
        def likes() -> Preferences | None:
            return preferences.of(request.user) if isinstance(request.user, User) else None

        request.likes = likes  # type: ignore[attr-defined]
        with comfort.reading(likes):
            return get_response(request)

    return answer
