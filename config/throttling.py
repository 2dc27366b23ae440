"""Logins that are guessed at: who waits, and where requests come from. django-axes counts (config/settings.py)."""

from datetime import timedelta
from ipaddress import ip_address
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render


def wait(request: HttpRequest, response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """What a name gets from an address with too many wrong passwords: 429 and a calm word, whether or not anybody has
    that name."""
    time: timedelta = settings.AXES_COOLOFF_TIME
    seconds = int(time.total_seconds())
    answer = render(request, "login_wait.html", {"minutes": seconds // 60}, status=429)
    answer.headers["Retry-After"] = str(seconds)
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


def client_address(request: HttpRequest) -> str | None:
    """Where a request comes from: what connected to us or, behind proxies of one's own (`LANDED_TRUSTED_PROXIES`, how
    many), what the first of them saw. None when that is no address."""
    came = [str(request.META.get("REMOTE_ADDR") or "")]
    if proxies := settings.LANDED_TRUSTED_PROXIES:
        # Each adds to the end what connected to it; whatever stands before that, the client may have made up.
        came = str(request.META.get("HTTP_X_FORWARDED_FOR") or "").split(",")[-proxies:]
    try:
        return str(ip_address(came[0].strip()))
    except ValueError:
        return None
