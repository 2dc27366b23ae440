"""Stores observations: masked, salted, with the digest that history refers to."""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any
from uuid import UUID

from actions.canonical import canonical, digest, new_salt
from actions.models import Attempt, Evidence, EvidenceKind
from actions.models.history import evidence_refs
from actions.redaction import redact, redact_values


def named_in(refs: str) -> list[Evidence]:
    """The evidence that a history row's `evidence` column names, oldest first."""
    return list(Evidence.objects.filter(pk__in=[pk for pk, _ in evidence_refs(refs)]).order_by("pk"))


def store(
    *,
    intent_id: UUID | None,
    kind: EvidenceKind,
    source: str,
    content: Mapping[str, Any] | str,
    now: datetime,
    attempt: Attempt | None = None,
    secrets: Iterable[str | None] = (),
) -> Evidence:
    """Stores one observation. `content` is a text, or JSON values that are stored as their canonical text."""
    # Values are masked before they are written: inside of JSON their quotes would be escaped.
    text = (
        redact(content, secrets=secrets)
        if isinstance(content, str)
        else canonical(redact_values(content, secrets=secrets))
    )
    text = text.replace("\x00", "\N{SYMBOL FOR NULL}")
    # What a downstream sent may hold half surrogates, which no database stores.
    text = text.encode("utf-8", "backslashreplace").decode()
    salt = new_salt()
    return Evidence.objects.create(
        intent_id=intent_id,
        attempt=attempt,
        kind=kind,
        source=source[:200],
        text=text,
        salt=salt,
        digest=digest(text, salt=salt),
        created_at=now,
    )
