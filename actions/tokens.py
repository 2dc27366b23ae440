"""Credentials of agents: made, found, revoked. The text is shown once; only its digest is stored."""

import hashlib
import re
import secrets
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q

from actions import times
from actions.errors import Invalid
from actions.locking import for_change
from actions.models import Agent, Token

_FORM: Final = re.compile(r"lnd_[A-Za-z0-9_-]{43}")
_PREFIX: Final = 12
# Noting each use would make every request a write.
_NOTE_USE_EVERY: Final = timedelta(minutes=1)


def _digest(text: str) -> str:
    # Unsalted and fast is right here: 256 random bits can't be guessed, and the digest is what is looked up.
    return hashlib.sha256(text.encode()).hexdigest()


def mint(token: Token) -> str:
    """Gives an unsaved token its secret; returns the text, which nobody can get again."""
    text = f"lnd_{secrets.token_urlsafe(32)}"
    token.prefix, token.digest = text[:_PREFIX], _digest(text)
    return text


def create(
    agent: Agent,
    *,
    label: str = "",
    may_propose: bool = True,
    may_report: bool = False,
    may_read: bool = True,
    may_give_evidence: bool = False,
    expires_at: datetime | None = None,
) -> tuple[Token, str]:
    """A new token of `agent`, and its text.

    Raises Invalid for `evidence` together with propose or report, and for the built-in agent.
    """
    if agent.built_in:
        raise Invalid.field("agent", "The built-in application is trusted because it is this process; no token.")
    if may_give_evidence and (may_propose or may_report):
        raise Invalid.field("scopes", "The scope evidence is never granted together with propose or report.")
    token = Token(
        agent=agent,
        label=label,
        may_propose=may_propose,
        may_report=may_report,
        may_read=may_read,
        may_give_evidence=may_give_evidence,
        expires_at=expires_at,
    )
    text = mint(token)
    token.save(force_insert=True)
    return token, text


def find(text: str) -> Token | None:
    """The token with this text, its agent loaded; None when there is none, or it is revoked or expired."""
    if not _FORM.fullmatch(text):
        return None
    now = times.now()
    token = (
        Token.objects.select_related("agent")
        .filter(Q(expires_at__isnull=True) | Q(expires_at__gt=now), digest=_digest(text), revoked_at__isnull=True)
        .first()
    )
    if token is not None:
        _note_use(token, now)
    return token


def _note_use(token: Token, now: datetime) -> None:
    due = now - _NOTE_USE_EVERY
    if token.last_used_at is not None and token.last_used_at > due:
        return
    # Conditional, so that of many requests at once one writes.
    long_ago = Q(last_used_at__isnull=True) | Q(last_used_at__lte=due)
    if Token.objects.filter(long_ago, pk=token.pk).update(last_used_at=now):
        token.last_used_at = now


def revoke(token: Token) -> None:
    """Ends a token for good. Revoking it twice keeps the first time."""
    with transaction.atomic():
        locked = for_change(Token).get(pk=token.pk)
        if locked.revoked_at is None:
            locked.revoked_at = times.now()
            locked.save(update_fields=["revoked_at"])
    token.revoked_at = locked.revoked_at
