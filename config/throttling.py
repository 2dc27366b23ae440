"""Logins that are guessed at: who waits, and where requests come from. django-axes counts (config/settings.py)."""

from datetime import timedelta
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Any, Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

# One more than any name has (User.username): such a one is nobody's, and axes' column holds no more than 255.
_MOST_OF_A_NAME: Final = 151
# What one customer of a provider has at least (RFC 6177): all of it is one place to guess from.
_ONE_LINE: Final = 64


def wait(request: HttpRequest, response: HttpResponse | None, credentials: dict[str, Any] | None) -> HttpResponse:
    """What a name gets from an address with too many wrong passwords: 429 and a calm word, whether or not anybody has
    that name."""
    time: timedelta = settings.AXES_COOLOFF_TIME
    seconds = int(time.total_seconds())
    answer = render(request, "login_wait.html", {"minutes": seconds // 60}, status=429)
    answer.headers["Retry-After"] = str(seconds)
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


def client_name(request: HttpRequest, credentials: dict[str, Any] | None) -> str | None:
    """The name that is counted: as it was typed, and no more of it than any name has. Forms let longer ones pass."""
    found = (credentials or request.POST).get("username")
    return None if found is None else str(found)[:_MOST_OF_A_NAME]


def client_address(request: HttpRequest) -> str | None:
    """Where a request comes from: what connected to us or, behind proxies of one's own (`LANDED_TRUSTED_PROXIES`, how
    many), what the first of them saw; of IPv6 the first 64 bits. None when that is no address."""
    came = [str(request.META.get("REMOTE_ADDR") or "")]
    if proxies := settings.LANDED_TRUSTED_PROXIES:
        # Each adds to the end what connected to it; whatever stands before that, the client may have made up.
        came = str(request.META.get("HTTP_X_FORWARDED_FOR") or "").split(",")[-proxies:]
    try:
        found = ip_address(came[0].strip())
    except ValueError:
        return None
    return _line_of(found) if isinstance(found, IPv6Address) else str(found)


def _line_of(found: IPv6Address) -> str:
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((int(found), _ONE_LINE), strict=False).network_address)
