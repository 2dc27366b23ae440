"""What both clients share on their way to httpx."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

import httpx

from landed_client.wire import Lost, Reply, Request

# An answer of ours is some kilobytes; a page of them a few hundred.
LARGEST_BODY: Final = 8_388_608
TOO_LARGE: Final = Lost(f"an answer of more than {LARGEST_BODY} bytes")
TOO_SLOW: Final = Lost("no whole answer in time")


def api_url(base_url: str) -> str:
    """Where the API is. Raises ValueError for anything but http(s)://host, without credentials in it."""
    parts = urlsplit(base_url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("base_url must begin with http:// or https:// and a host.")
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("base_url must hold no credentials, query or fragment.")
    return base_url.rstrip("/") + "/api/v1"


def settings_of_http(token: str) -> Mapping[str, Any]:
    """Keyword arguments for httpx's clients. Raises ValueError for what can't be a token, without showing it."""
    if not token or not all("\x21" <= char <= "\x7e" for char in token):
        raise ValueError("A token is visible ASCII, without spaces or line ends.")
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json",
        # Our answers are small, and what isn't packed can't unpack into something large.
        "Accept-Encoding": "identity",
        "User-Agent": "landed-client",
    }
    return {"headers": headers, "follow_redirects": False}


def arguments_of(request: Request, url: str) -> dict[str, Any]:
    """Keyword arguments for `stream`."""
    return {
        "method": request.method,
        "url": url + request.path,
        "params": dict(request.query) or None,
        "headers": dict(request.headers),
        "content": request.content,
        "timeout": httpx.Timeout(request.timeout, connect=min(5.0, request.timeout)),
    }


def reply_of(response: httpx.Response, content: bytes) -> Reply:
    return Reply(response.status_code, {name.lower(): text for name, text in response.headers.items()}, content)


def lost_by(error: httpx.RequestError) -> Lost:
    """`sent` is False only where no connection came about, so that nothing can have arrived."""
    unsent = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
    return Lost(type(error).__name__, sent=not unsent)
