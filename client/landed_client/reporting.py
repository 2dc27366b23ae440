"""What a caller says of an attempt of its own, as keyword arguments."""

from collections.abc import Mapping
from typing import Any, Literal, Required, TypedDict

Said = Literal["confirmed", "failed", "unknown", "not_sent"]


class Reporting(TypedDict, total=False):
    """`attempt`: its number. `external_id`: the downstream's own. `answer`: what it said; `failed` needs it."""

    attempt: Required[int]
    claim_token: Required[str]
    outcome: Required[Said]
    external_id: str | None
    answer: Mapping[str, Any] | None


def report_body(said: Reporting) -> dict[str, Any]:
    """The JSON object of a report. Raises TypeError for a missing or unknown field."""
    if unknown := set(said) - set(Reporting.__annotations__):
        raise TypeError(f"report() takes no {', '.join(sorted(unknown))}.")
    if missing := {"attempt", "claim_token", "outcome"} - set(said):
        raise TypeError(f"report() needs {', '.join(sorted(missing))}.")
    return {name: value for name, value in said.items() if value is not None}
