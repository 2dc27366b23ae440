"""Reads a proposal out of a JSON object, field by field, without coercing anything.

`true` is no amount, 1 is no text, 50.00 is read as the digits "50.00". What a value means (is EUR a currency, is
the subject free) is judged in `actions.recording`.
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from actions.canonical import Number
from actions.errors import Invalid
from actions.proposals import Proposal

NAMES: Final = (
    "kind",
    "subject",
    "amount",
    "currency",
    "params",
    "note",
    "context",
    "executor",
    "claim_token",
    "send_before",
    "repeat_of",
)
_EXECUTOR: Final = "landed"
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE | re.ASCII)
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})", re.ASCII)


def read_proposal(body: Mapping[str, Any]) -> Proposal:
    """Raises Invalid that lists every field of a wrong type, every missing and every unknown one."""
    errors: list[dict[str, str]] = []
    fields = Fields(body, errors)
    proposal = Proposal(
        kind=fields.required_text("kind"),
        subject=fields.optional_text("subject"),
        amount=fields.amount("amount"),
        currency=fields.optional_text("currency"),
        params=fields.mapping("params"),
        note=fields.text("note", ""),
        context=fields.mapping("context", of_texts=True),
        executor=fields.text("executor", _EXECUTOR),
        claim_token=fields.optional_text("claim_token"),
        send_before=fields.time("send_before"),
        repeat_of=fields.uuid("repeat_of"),
    )
    refuse_unknown(body, NAMES, errors)
    if errors:
        raise Invalid(errors)
    return proposal


def refuse_unknown(body: Mapping[str, Any], known: tuple[str, ...], errors: list[dict[str, str]]) -> None:
    """Adds an error for each field that is not known: what is not understood must not be passed over."""
    there_are = f"there are {', '.join(known)}." if known else "this takes no fields."
    errors += [{"field": name, "message": f"Unknown; {there_are}"} for name in body if name not in known]


def read_time(text: str) -> datetime:
    """An RFC 3339 time, in UTC. Raises ValueError, with a sentence, also for one without a zone."""
    if not _TIME.fullmatch(text):
        raise ValueError("A time with a zone as in RFC 3339, such as 2026-11-29T12:00:00Z.")
    try:
        return datetime.fromisoformat(text.upper()).astimezone(UTC)
    except (ValueError, OverflowError):
        raise ValueError("There is no such time.") from None


class Fields:
    """A JSON object being read, and what was wrong with it so far."""

    def __init__(self, body: Mapping[str, Any], errors: list[dict[str, str]]) -> None:
        self._body, self._errors = body, errors

    def wrong(self, name: str, message: str) -> None:
        self._errors.append({"field": name, "message": message})

    def required_text(self, name: str) -> str:
        if name not in self._body:
            self.wrong(name, "Missing.")
            return ""
        return self.text(name, "")

    def text(self, name: str, default: str) -> str:
        value = self._body.get(name, default)
        # Exactly str: a JSON number with a fraction is a subclass of it here.
        if type(value) is str:
            return value
        self.wrong(name, "A text.")
        return default

    def optional_text(self, name: str) -> str | None:
        return None if self._body.get(name) is None else self.text(name, "")

    def amount(self, name: str) -> str | None:
        value = self._body.get(name)
        if value is None:
            return None
        # Exactly int: true is one of its subclass. The digits are kept; what they may be is judged later.
        if type(value) in (str, int, Number):
            return str(value)
        self.wrong(name, 'A decimal string such as "50.00", or a JSON number.')
        return None

    def whole_number(self, name: str, *, least: int, most: int) -> int | None:
        """None when it is left out, null, or wrong."""
        value = self._body.get(name)
        # Exactly int: true is one of its subclass.
        if value is None or (type(value) is int and least <= value <= most):
            return value
        self.wrong(name, f"A whole number from {least} to {most}.")
        return None

    def mapping(self, name: str, *, of_texts: bool = False) -> dict[str, Any]:
        value = self._body.get(name, {})
        if not isinstance(value, dict):
            self.wrong(name, "An object.")
            return {}
        if of_texts:
            for key, inner in value.items():
                if type(inner) is not str:
                    self.wrong(f"{name}.{key}", "A text.")
        return value

    def time(self, name: str) -> datetime | None:
        text = self.optional_text(name)
        if not text:
            if text == "" and self._body[name] == "":
                self.wrong(name, "A time with a zone as in RFC 3339, or null.")
            return None
        try:
            return read_time(text)
        except ValueError as wrong:
            self.wrong(name, str(wrong))
            return None

    def uuid(self, name: str) -> UUID | None:
        text = self.optional_text(name)
        if text is None:
            return None
        if _UUID.fullmatch(text):
            return UUID(text)
        if type(self._body[name]) is str:
            self.wrong(name, "The id of an intent, or null.")
        return None
