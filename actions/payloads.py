"""What an intent's payload digest covers. Pure.

Recording, the comparison of a repeated proposal and the verifier all come here, so that they mean the same.
"""

from typing import Any

from actions.canonical import canonical, digest


def payload(
    *, kind: str, subject: str, amount_minor: int | None, currency: str, params: str, executor: str
) -> dict[str, Any]:
    """The binding fields, by the names that callers know; `params` is canonical JSON. Never note or context."""
    return {
        "kind": kind,
        "subject": subject,
        "amount": None if amount_minor is None else str(amount_minor),
        "currency": currency,
        "params": params,
        "executor": executor,
    }


def payload_digest(fields: dict[str, Any], *, salt: str) -> str:
    return digest(canonical(fields), salt=salt)
