"""Who asks: a bearer token, and whether it has the scope."""

from typing import Any, Final, cast

from django.http import HttpRequest
from ninja.security.base import AuthBase

from actions import rates, tokens
from actions.errors import ScopeMissing, Unauthenticated
from actions.models import Agent, Scope, Token
from actions.rates import Bucket

READ: Final = (Scope.READ,)
PROPOSE: Final = (Scope.PROPOSE,)
REPORT: Final = (Scope.REPORT,)


class Bearer(AuthBase):
    """Lets a request through whose token has one of `scopes` (none named: any valid token), within its rate.

    A token counts in the header Authorization only (RFC 6750 §2.1). In an address it would end up in logs, so it
    is not looked for there.
    """

    openapi_type = "http"
    openapi_scheme = "bearer"

    def __init__(self, *scopes: Scope, bucket: Bucket = Bucket.OTHER) -> None:
        super().__init__()
        self._scopes, self._bucket = scopes, bucket

    def __call__(self, request: HttpRequest) -> Any:
        token = _valid_token(request)
        wanted = [scope.value for scope in self._scopes]
        if wanted and not token.scopes & set(wanted):
            names = " or ".join(wanted)
            raise ScopeMissing(f"This token lacks the scope {names}.", scope=wanted[0])
        rates.take(token.agent, self._bucket)
        return token


def _valid_token(request: HttpRequest) -> Token:
    scheme, _, text = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not text.strip():
        raise Unauthenticated("Send your token in the header Authorization, as: Bearer <token>.")
    token = tokens.find(text.strip())
    if token is None:
        # Unknown, revoked, expired: whoever holds no valid token doesn't learn which.
        raise Unauthenticated("This token is not valid.")
    return token


def agent_of(request: HttpRequest) -> Agent:
    """The agent whose token this request showed. Only behind `Bearer`."""
    return token_of(request).agent


def token_of(request: HttpRequest) -> Token:
    return cast(Token, cast(Any, request).auth)
