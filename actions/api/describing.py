"""What the OpenAPI document says beside the schemas: headers, the query, the body, and which problems can come."""

from collections.abc import Iterable
from typing import Any, Final

from actions.api import problems
from actions.api.listing import DEFAULT_LIMIT, MAX_LIMIT
from actions.api.schemas import ClaimBodyIn, LimitOut, ProposalIn, ReportIn
from actions.models import Executor
from actions.statuses import Status

_PROBLEM: Final = {"type": "object", "required": ["type", "title", "status", "detail", "code", "retryable"]}
_MEMBERS: Final = {
    "type": {"type": "string", "format": "uri-reference"},
    "title": {"type": "string"},
    "status": {"type": "integer"},
    "detail": {"type": "string"},
    "code": {"type": "string"},
    "retryable": {"type": "boolean", "description": "Whether the very same request can succeed later."},
}

_ALWAYS: Final = (401, 403, 500, 503)


def _problems(*statuses: int) -> dict[int, Any]:
    """OpenAPI responses for these statuses, each listing its codes."""
    rows = problems.codes()
    found = {}
    for status in sorted({*statuses, *_ALWAYS}):
        codes = [row.code for row in rows if row.status == status]
        members = _MEMBERS | {"code": {"type": "string", "examples": codes}}
        found[status] = {
            "description": ", ".join(codes),
            "content": {problems.MEDIA_TYPE: {"schema": _PROBLEM | {"properties": members}}},
        }
    return found


def _query(name: str, description: str, schema: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    return {
        "in": "query",
        "name": name,
        "required": False,
        "description": description,
        "schema": schema or {"type": "string"},
        **more,
    }


def _operation(statuses: Iterable[int], **more: Any) -> dict[str, Any]:
    return {"responses": _problems(*statuses), **more}


_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "required": True,
    "description": "A quoted string, or a bare token: 1 to 255 visible ASCII characters.",
    "schema": {"type": "string"},
}

_PREFER: Final = {
    "in": "header",
    "name": "Prefer",
    "required": False,
    "description": (
        "wait=N (RFC 7240): holds the answer for at most N seconds (30) while there is nothing to do but wait. "
        "Then it carries Preference-Applied; when too many wait already, it comes at once with Retry-After."
    ),
    "schema": {"type": "string"},
}

_BODY: Final = ProposalIn.model_json_schema()
assert _BODY["properties"]["executor"]["enum"] == Executor.values, "the document must name every executor"

# What a refusal with limit_exceeded says beside the members that every problem has.
_EXCEEDED: Final = {
    "limit": LimitOut.model_json_schema() | {"description": "With limit_exceeded: which one."},
    "remaining": {"type": ["string", "integer"], "description": "How much of the limit is left."},
    "resets_at": {
        "type": ["string", "null"],
        "format": "date-time",
        "description": "When the same proposal fits, if nothing else uses it up; null: not by waiting alone.",
    },
}


def _with_members(operation: dict[str, Any], status: int, members: dict[str, Any]) -> dict[str, Any]:
    schema = operation["responses"][status]["content"][problems.MEDIA_TYPE]["schema"]
    schema["properties"] = schema["properties"] | members
    return operation


_RECORD: Final = _operation(
    (400, 409, 413, 415, 422, 429),
    parameters=[_KEY, _PREFER],
    requestBody={"required": True, "content": {"application/json": {"schema": _BODY}}},
)
RECORD: Final = _with_members(_RECORD, 409, _EXCEEDED)


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


CLAIM: Final = _operation((400, 404, 409, 413, 415, 422, 429), requestBody=_body(ClaimBodyIn.model_json_schema()))
RENEW: Final = CLAIM
REPORT: Final = _operation((400, 404, 409, 413, 415, 422, 429), requestBody=_body(ReportIn.model_json_schema()))
OWN: Final = _operation((429,))
READ: Final = _operation((404, 429), parameters=[_PREFER])
HISTORY: Final = _operation((404, 429))
CANCEL: Final = _operation((404, 409, 429))
LIST: Final = _operation(
    (400, 429),
    parameters=[
        _query(
            "status",
            "One or more, repeated or with commas.",
            {"type": "array", "items": {"type": "string", "enum": Status.values}},
            explode=True,
        ),
        _query("settled", "Only settled ones, or only the others.", {"type": "boolean"}),
        _query("kind", "The kind's name."),
        _query("subject", "Exactly this subject."),
        _query("request_key", "The Idempotency-Key that it was proposed with."),
        _query("run", "The context's run."),
        _query("updated_after", "Changed after this time.", {"type": "string", "format": "date-time"}),
        _query("cursor", "The next_cursor of the page before."),
        _query(
            "limit", "How many.", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        ),
    ],
)
