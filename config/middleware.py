"""What goes for every request and every answer."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.template.loader import render_to_string

# No inline script, no inline style, nothing from elsewhere: text that an agent wrote can't become code here.
POLICY = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    ]
)


def security_headers(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    def add(request: HttpRequest) -> HttpResponse:
        response = get_response(request)
        response.headers.setdefault("Content-Security-Policy", POLICY)
        response.headers.setdefault("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        return response

    return add


def forms_in_utf8(
    get_response: Callable[[HttpRequest], HttpResponse],
) -> Callable[[HttpRequest], HttpResponse]:
    """Answers 400 to a form in another encoding. Django would refuse it whenever it is first read, which is also
    where it renders the page that says so (its check against forgery): 500. The API reads no forms."""

    def check(request: HttpRequest) -> HttpResponse:
        is_form = request.content_type == "application/x-www-form-urlencoded"
        if is_form and (request.encoding or "utf-8").lower() != "utf-8" and not request.path_info.startswith("/api/"):
            return HttpResponseBadRequest(render_to_string("400.html"))
        return get_response(request)

    return check
