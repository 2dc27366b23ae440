"""What the OpenAPI document says of these routes beside the schemas."""

from typing import Any, Final

from actions.api import problems
from actions.api.describing import schema_of
from reconciliation.api.schemas import DEFAULT_LIMIT, MAX_LIMIT, EvidenceIn

_PROBLEM: Final = {"type": "object", "required": ["type", "title", "status", "detail", "code", "retryable"]}


def _refusals(*statuses: int) -> dict[int, Any]:
    """OpenAPI responses for these statuses, each listing its codes."""
    found = {}
    for status in sorted({*statuses, 401, 500, 503}):
        codes = [row.code for row in problems.codes() if row.status == status]
        found[status] = {
            "description": ", ".join(codes),
            "content": {problems.MEDIA_TYPE: {"schema": _PROBLEM}},
        }
    return found


WEBHOOK: Final = {
    "security": [],
    "requestBody": {
        "required": True,
        "description": "As the downstream sends it; its signature is in the headers.",
        "content": {"application/json": {"schema": {}}},
    },
    "responses": _refusals(400, 404, 413),
}

DUE: Final = {
    "parameters": [
        {
            "in": "query",
            "name": "limit",
            "required": False,
            "description": "How many.",
            "schema": {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT},
        },
        {
            "in": "query",
            "name": "kind",
            "required": False,
            "description": "The kind's name.",
            "schema": {"type": "string"},
        },
    ],
    "responses": _refusals(400, 403, 429),
}

EVIDENCE: Final = {
    "requestBody": {
        "required": True,
        "content": {"application/json": {"schema": schema_of(EvidenceIn)}},
    },
    "responses": _refusals(400, 403, 404, 413, 415, 422, 429),
}
