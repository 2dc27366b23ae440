"""Reads the bodies about attempts: claims, renewals and reports. Nothing is coerced."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from actions import callers, leases
from actions.api.fields import Fields, refuse_unknown
from actions.canonical import MAX_INTEGER, canonical
from actions.errors import Invalid
from actions.models import Result
from actions.outcomes import Outcome
from actions.reasons import Reason

CLAIM: Final = ("claim_token", "lease_s")
REPORT: Final = ("attempt", "claim_token", "outcome", "external_id", "answer")
MAX_ANSWER: Final = 65_536

_TOKEN: Final = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)
_MOST_ATTEMPTS: Final = 2**31 - 1
# What a caller says, and what that would make of its attempt.
OUTCOMES: Final = {
    "confirmed": Result.CONFIRMED,
    "failed": Result.REFUSED,
    "unknown": Result.NO_ANSWER,
    "not_sent": Result.NOT_SENT,
}


@dataclass(frozen=True)
class ClaimBody:
    claim_token: str
    lease_s: int | None


@dataclass(frozen=True)
class ReportBody:
    """`content`: what is kept as evidence."""

    attempt: int
    claim_token: str
    outcome: Outcome
    content: dict[str, Any]


def read_claim(body: Mapping[str, Any]) -> ClaimBody:
    """Raises Invalid, with every field that can't be taken."""
    errors: list[dict[str, str]] = []
    fields = Fields(body, errors)
    found = ClaimBody(
        claim_token=_token(body, fields),
        lease_s=fields.whole_number("lease_s", least=leases.SHORTEST_S, most=leases.LONGEST_S),
    )
    refuse_unknown(body, CLAIM, errors)
    if errors:
        raise Invalid(errors)
    return found


def read_report(body: Mapping[str, Any]) -> ReportBody:
    """Raises Invalid, with every field that can't be taken; also for `failed` without an answer that says so."""
    errors: list[dict[str, str]] = []
    fields = Fields(body, errors)
    token = _token(body, fields)
    attempt = fields.whole_number("attempt", least=1, most=_MOST_ATTEMPTS)
    if body.get("attempt") is None:
        fields.wrong("attempt", "Missing: the number of the attempt that this is about.")
    said = fields.required_text("outcome")
    if "outcome" in body and type(body["outcome"]) is str and said not in OUTCOMES:
        fields.wrong("outcome", f"One of {', '.join(OUTCOMES)}.")
    external_id = fields.optional_text("external_id")
    if external_id is not None and len(external_id) > 255:
        fields.wrong("external_id", "Longer than 255 characters.")
    answer = _answer(body, fields)
    if said == "failed" and not answer:
        fields.wrong("answer", "A refusal needs the answer that says so; without one it is unknown.")
    refuse_unknown(body, REPORT, errors)
    if errors:
        raise Invalid(errors)
    assert attempt is not None
    return ReportBody(
        attempt=attempt,
        claim_token=token,
        outcome=_outcome(said, external_id or ""),
        content={"outcome": said, "external_id": external_id, "answer": answer},
    )


def _outcome(said: str, external_id: str) -> Outcome:
    result = OUTCOMES[said]
    reason = Reason.REPORTED_UNKNOWN if result is Result.NO_ANSWER else Reason.REPORTED
    # Amounts inside the answer are evidence, not what it is settled by: nobody has checked what they mean.
    return callers.reported(result, external_id=external_id, reason=reason)


def _token(body: Mapping[str, Any], fields: Fields) -> str:
    token = fields.required_text("claim_token")
    if type(body.get("claim_token")) is str and not _TOKEN.fullmatch(token):
        fields.wrong("claim_token", "1 to 255 visible ASCII characters.")
    return token


def _answer(body: Mapping[str, Any], fields: Fields) -> dict[str, Any] | None:
    if body.get("answer") is None:
        return None
    found: dict[str, Any] = plain(fields.mapping("answer"))
    if len(canonical(found)) > MAX_ANSWER:
        fields.wrong("answer", f"Longer than {MAX_ANSWER} characters.")
    return found


def plain(value: Any) -> Any:
    """`value` as evidence can hold it: numbers that are no exact doubles are kept as their digits."""
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    if type(value) is int and abs(value) > MAX_INTEGER:
        return str(value)
    return str(value) if isinstance(value, str) else value
