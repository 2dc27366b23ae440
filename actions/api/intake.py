"""What is read from a request by hand: its body and its request key. Nothing is guessed."""

import re
from typing import Any, Final

from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest
from django.http.request import UnreadablePostError

from actions.api.problems import BodyTooLarge, UnsupportedMedia
from actions.canonical import BadJson, read_json
from actions.errors import BadIdempotencyKey, BadJsonBody, MissingIdempotencyKey

MAX_BODY: Final = 1_048_576

_MEDIA_TYPE: Final = re.compile(r'application/json\s*(;\s*charset\s*=\s*"?utf-8"?\s*)?', re.IGNORECASE | re.ASCII)
# A quoted string as in RFC 8941 §3.3.3, without the space, which is not visible.
_QUOTED: Final = re.compile(r'"((?:[\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"', re.ASCII)
_ESCAPED: Final = re.compile(r'\\(["\\])')
# A bare key with a comma can't be told from two headers, which servers join with one.
_BARE: Final = re.compile(r"[\x21\x23-\x2b\x2d-\x7e][\x21-\x2b\x2d-\x7e]*", re.ASCII)
_LONGEST_KEY: Final = 255


def read_object(request: HttpRequest) -> dict[str, Any]:
    """The body's JSON object.

    Raises:
        UnsupportedMedia, BodyTooLarge, BadJsonBody: each with a sentence that says what is wrong.
    """
    media_type = request.META.get("CONTENT_TYPE") or ""
    if media_type and not _MEDIA_TYPE.fullmatch(media_type.strip()):
        raise UnsupportedMedia(f"The body must be application/json in UTF-8, not {media_type!r}.")
    body = _body(request)
    if not body.strip():
        # WSGI hands on no more than Content-Length says, so a chunked body arrives as an empty one.
        chunked = "Transfer-Encoding" in request.headers
        raise BadJsonBody("Send the body with a Content-Length." if chunked else "The body is empty.")
    try:
        found = read_json(body)
    except BadJson as bad:
        raise BadJsonBody(str(bad)) from None
    if not isinstance(found, dict):
        raise BadJsonBody("The body must be a JSON object.")
    return found


def _body(request: HttpRequest) -> bytes:
    try:
        body = request.body
    except RequestDataTooBig:
        raise BodyTooLarge() from None
    except UnreadablePostError:
        raise BadJsonBody("The body broke off.") from None
    if len(body) > MAX_BODY:
        raise BodyTooLarge()
    return body


def request_key(request: HttpRequest) -> str:
    """The header Idempotency-Key: a quoted string (draft-ietf-httpapi-idempotency-key-header §2.1) or a bare one.

    Read here and not declared as a parameter: a missing one is a 400 with its own code, not a field of the body.

    Raises MissingIdempotencyKey; BadIdempotencyKey for anything but 1 to 255 visible ASCII characters, and for
    two headers.
    """
    raw = request.headers.get("Idempotency-Key")
    if raw is None:
        raise MissingIdempotencyKey()
    raw = raw.strip(" \t")
    if quoted := _QUOTED.fullmatch(raw):
        key = _ESCAPED.sub(r"\1", quoted[1])
    elif _BARE.fullmatch(raw):
        key = raw
    else:
        raise BadIdempotencyKey(_what_is_wrong(raw))
    if not 1 <= len(key) <= _LONGEST_KEY:
        raise BadIdempotencyKey()
    return key


def _what_is_wrong(raw: str) -> str:
    if "," in raw:
        return "Send one Idempotency-Key; a key that holds a comma goes in double quotes."
    if raw.startswith('"'):
        return 'A quoted Idempotency-Key holds visible ASCII and ends with a quote; \\" and \\\\ are its escapes.'
    return BadIdempotencyKey.title
