"""Rows that are written beside a decision about an entry: words kept as evidence, and what became of it."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.auth.models import User

from actions import evidence
from actions.models import Evidence, EvidenceKind
from reconciliation.models import Choice, Decision
from reconciliation.reviews import voiding


def keep(
    intent_id: UUID | None, content: str | dict[str, Any], kind: EvidenceKind, person_id: int | None, now: datetime
) -> Evidence:
    return evidence.store(intent_id=intent_id, kind=kind, source=f"person:{person_id}", content=content, now=now)


def say_about(earlier: Decision, choice: Choice, person: User | None, now: datetime) -> Decision:
    return voiding.about(earlier, choice, person, now=now)
