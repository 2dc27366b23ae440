"""The shapes of bodies, for the OpenAPI document. Answers are written beside their routes; a test holds the two
together."""

from datetime import datetime
from typing import Any, Final, Literal
from uuid import UUID

from ninja import Schema
from pydantic import BaseModel, ConfigDict, Field

from actions.api.schemas import IntentOut
from reconciliation.models import Verdict

DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
MOST_ENTRIES: Final = 1_000
LONGEST_TEXT: Final = 200


class DueCheckOut(Schema):
    """A look that is yours to make until `answer_before`."""

    check: str = Field(description="Show it with the answer; it is good for this one look.")
    answer_before: datetime
    intent_id: UUID
    kind: str
    subject: str
    amount: str | None
    currency: str | None
    params: dict[str, Any]
    idempotency_key: str = Field(description="What carries this key in the books is the intent's own.")
    external_id: str | None
    first_maybe_sent_at: datetime | None = Field(description="Nothing of it can be older.")
    fence: int


class DueOut(Schema):
    data: list[DueCheckOut]


class VerdictOut(Schema):
    verdict: Verdict
    counts_as_absence: bool
    intent: IntentOut


class EntryIn(BaseModel):
    """One row of the book, as it stands there."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"title": "Entry"})

    entry_id: str | None = Field(None, max_length=255, description="The book's own id, where it has one.")
    role: Literal["effect", "reversal", "fee", "unknown"]
    state: Literal["final", "pending", "failed"]
    key: str | None = Field(None, max_length=255, description="The idempotency key, where the book keeps it.")
    subject: str | None = Field(None, max_length=LONGEST_TEXT)
    amount: str | float | None = Field(None, description='A decimal string ("50.00"), with currency.')
    currency: str | None = Field(None, description="ISO 4217.")
    booked_at: datetime | None = None


class EvidenceIn(BaseModel):
    """What one look into the books showed about one intent."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"title": "Evidence"})

    check: str | None = Field(None, description="Of GET /checks/due. null: said unasked; never counts as an absence.")
    complete: bool = Field(description="Whether everything that could be the intent was looked at.")
    problem: str | None = Field(None, max_length=LONGEST_TEXT, description="Why it is not complete.")
    source: str = Field(max_length=LONGEST_TEXT, description="Where you looked.")
    started_at: datetime | None = Field(None, description="When you began, by your clock.")
    entries: list[EntryIn] = Field(max_length=MOST_ENTRIES, description="All that it could be; [] for none.")
