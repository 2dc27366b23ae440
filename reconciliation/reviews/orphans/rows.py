"""Rows that are written beside a decision about an entry: words kept as evidence, and what became of it."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from actions import evidence, history
from actions.models import Evidence, EvidenceKind
from reconciliation.models import (
    Choice,
    Decision,
    Review,
)


def keep(
    intent_id: UUID | None, content: str | dict[str, Any], kind: EvidenceKind, person_id: int | None, now: datetime
) -> Evidence:
    return evidence.store(intent_id=intent_id, kind=kind, source=f"person:{person_id}", content=content, now=now)


def say_about(earlier: Decision, choice: Choice, person: User | None, now: datetime) -> Decision:
    row = Decision(
        review_id=earlier.review_id,
        entry_id=earlier.entry_id,
        linked_id=earlier.linked_id,
        person=person,
        choice=choice,
        about=earlier,
        seen_version=earlier.seen_version,
        payload_digest=earlier.payload_digest,
    )
    return history.append(row, owner=Review, pk=earlier.review_id, at=now)
