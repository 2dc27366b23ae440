"""Words that are kept as evidence beside a decision about an entry."""

from datetime import datetime
from typing import Any
from uuid import UUID

from actions import evidence
from actions.models import Evidence, EvidenceKind


def keep(
    intent_id: UUID | None, content: str | dict[str, Any], kind: EvidenceKind, person_id: int | None, now: datetime
) -> Evidence:
    return evidence.store(intent_id=intent_id, kind=kind, source=f"person:{person_id}", content=content, now=now)
