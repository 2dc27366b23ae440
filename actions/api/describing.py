"""What the OpenAPI document says beside the schemas: headers, the query, the body, and which problems can come."""

from collections.abc import Iterable
from typing import Any, Final

from pydantic import BaseModel

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
    "schema": {"type": "string", "pattern": "^[!-~]{1,257}$"},
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


def schema_of(body: type[BaseModel]) -> dict[str, Any]:
    """Its JSON Schema with every definition in place: `#/$defs/…` would point nowhere in the document."""
    schema = body.model_json_schema()
    definitions = schema.pop("$defs", {})

    def in_place(part: Any) -> Any:
        if isinstance(part, list):
            return [in_place(one) for one in part]
        if not isinstance(part, dict):
            return part
        if name := str(part.get("$ref", "")).removeprefix("#/$defs/"):
            return in_place(definitions[name] | {key: value for key, value in part.items() if key != "$ref"})
        return {key: in_place(value) for key, value in part.items()}

    found: dict[str, Any] = in_place(schema)
    return found


def _links() -> dict[str, Any]:
    """What can be done next with the intent that an answer holds (OpenAPI 3.1, link object)."""
    intent = {"intent_id": "$response.body#/id"}
    attempt = intent | {"number": "$response.body#/attempt/number"}
    return {
        name: {"operationId": f"actions_api_{operation}", "parameters": parameters}
        for name, operation, parameters in (
            ("read", "intents_read_intent", intent),
            ("history", "intents_read_history", intent),
            ("cancel", "intents_cancel_intent", intent),
            ("claim", "attempts_claim_intent", intent),
            ("renew", "attempts_renew_attempt", attempt),
            ("report", "attempts_report_outcome", intent),
        )
    }


_BODY: Final = schema_of(ProposalIn)
assert _BODY["properties"]["executor"]["enum"] == Executor.values, "the document must name every executor"

# What a refusal with limit_exceeded says beside the members that every problem has.
_EXCEEDED: Final = {
    "limit": schema_of(LimitOut) | {"description": "With limit_exceeded: which one."},
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
RECORD["responses"][201] = {"links": _links()}


def _body(schema: dict[str, Any]) -> dict[str, Any]:
    return {"required": True, "content": {"application/json": {"schema": schema}}}


CLAIM: Final = _operation((400, 404, 409, 413, 415, 422, 429), requestBody=_body(schema_of(ClaimBodyIn)))
RENEW: Final = CLAIM
REPORT: Final = _operation((400, 404, 409, 413, 415, 422, 429), requestBody=_body(schema_of(ReportIn)))
OWN: Final = _operation((429,))
READ: Final = _operation((404, 429), parameters=[_PREFER])
HISTORY: Final = _operation((404, 429))
CANCEL: Final = _operation((404, 409, 429))
_WAIT: Final = _PREFER | {
    "description": (
        "wait=N (RFC 7240): with nothing past `after`, holds the answer until there is something, for at most N "
        "seconds (30). Then it carries Preference-Applied; when too many wait already, it comes at once with "
        "Retry-After."
    )
}
EVENTS: Final = _operation(
    (400, 422, 429),
    parameters=[
        _query(
            "after",
            "The `next` of the answer before; left out: from the beginning.",
            {"type": "integer", "minimum": 0, "default": 0},
        ),
        _query(
            "limit", "How many.", {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        ),
        _WAIT,
    ],
)
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
