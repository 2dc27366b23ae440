"""Checks an `http_json` configuration before anything depends on it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jmespath
from jmespath.functions import Functions
from jsonschema import Draft202012Validator

# What expressions in `send` and in questions may use.
SCOPE = (
    *("intent_id", "idempotency_key", "kind", "subject", "amount_minor", "amount", "currency"),
    *("params", "account"),
)
# ... and those in the question for what is recent, which is about no intent.
RECENT_SCOPE = ("since", "account")
HEADER_WORDS = ("secret", "account")
PLACEHOLDER = re.compile(r"\{([^{}]*)\}")

# Which reasons each result of a known error can have; the first is the one when none is given.
KNOWN_ERRORS: Mapping[str, tuple[str, ...]] = {
    "refused": ("refused_by_downstream", "declined_by_downstream", "effect_exists_elsewhere", "payment_disputed"),
    "not_processed": ("not_processed", "rate_limited"),
    "no_answer": (
        *("unclear_status", "key_used_otherwise", "duplicate_request", "conflict", "rate_limited"),
        *("server_error", "unknown_state"),
    ),
}

_EXPRESSION = {"type": "string", "minLength": 1}
_PATH = {"type": "string", "pattern": "^/[\\x21-\\x7e]*$"}
_STATES = {"type": "array", "minItems": 1, "items": {"type": ["string", "boolean", "integer"]}}
_STATUSES = {"type": "array", "items": {"type": "integer", "minimum": 400, "maximum": 499}}


def _each(schema: Any, names: str) -> dict[str, Any]:
    return dict.fromkeys(names.split(), schema)


def _object(required: str = "", **properties: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


_NAMED_EXPRESSIONS = {"type": "object", "additionalProperties": _EXPRESSION}
_QUESTION = _object(
    "path",
    path=_PATH,
    query=_NAMED_EXPRESSIONS,
    absent=_object("status when", status={"type": "integer", "minimum": 400, "maximum": 499}, when=_EXPRESSION),
)
_ENTRY = _object(
    **_each(_EXPRESSION, "id role status key subject amount_minor amount currency booked_at"),
    roles={"type": "object", "additionalProperties": {"enum": ["effect", "reversal", "fee", "unknown"]}},
    states={"type": "object", "additionalProperties": {"enum": ["final", "pending", "failed"]}},
)
SCHEMA = _object(
    "send answer",
    headers={"type": "object", "additionalProperties": {"type": "string"}},
    send=_object(
        "method path",
        method={"enum": ["POST", "PUT", "PATCH", "DELETE"]},
        path=_PATH,
        key_header={"type": "string", "pattern": "^[A-Za-z0-9-]+$"},
        body=_EXPRESSION,
        omit_nulls={"type": "boolean"},
    ),
    answer=_object(
        "id",
        **_each(_EXPRESSION, "id amount_minor amount currency subject key status"),
        **_each(_STATES, "confirmed pending failed"),
        trust_id_alone={"type": "boolean"},
    ),
    refused=_STATUSES,
    no_answer=_STATUSES,
    known_errors={
        "type": "array",
        "items": _object(
            "status result",
            status={"type": "integer", "minimum": 200, "maximum": 599},
            when=_EXPRESSION,
            result={"enum": list(KNOWN_ERRORS)},
            reason={"type": "string"},
        ),
    },
    look_up=_object(
        "items entry",
        key=_QUESTION,
        subject=_QUESTION,
        recent=_object("path", path=_PATH, query=_NAMED_EXPRESSIONS),
        **_each(_EXPRESSION, "items more cursor"),
        cursor_param={"type": "string", "minLength": 1},
        max_pages={"type": "integer", "minimum": 1, "maximum": 1000},
        entry=_ENTRY,
    ),
    webhook=_object("entries", **_each(_EXPRESSION, "entries topic at"), entry=_ENTRY),
)
_VALIDATOR = Draft202012Validator(SCHEMA)


def check(config: Mapping[str, Any]) -> list[str]:
    """Every problem, in plain words. Expressions are looked at only when the shape is right."""
    problems = [
        f"{error.json_path.removeprefix('$').removeprefix('.') or 'config'}: {error.message}"
        for error in _VALIDATOR.iter_errors(dict(config))
    ]
    return sorted(problems) or [*_bad_expressions(config), *_bad_headers(config), *_contradictions(config)]


def _bad_expressions(config: Mapping[str, Any]) -> Iterator[str]:
    for where, expression, scope in _expressions(config):
        try:
            tree = jmespath.compile(expression).parsed
        except ValueError as exc:  # every error of jmespath is one
            yield f"{where}: {expression!r} is not a JMESPath expression: {str(exc).splitlines()[0]}"
            continue
        for name in sorted(_functions(tree) - set(Functions.FUNCTION_TABLE)):
            yield f"{where}: there is no JMESPath function {name}()"
        for name in sorted(_roots(tree) - set(scope)) if scope else ():
            yield f"{where}: nothing is called {name!r}; there are {', '.join(scope)}"


def _expressions(config: Mapping[str, Any]) -> Iterator[tuple[str, str, Sequence[str]]]:
    """(where, expression, the names that it may read; empty: it reads an answer)"""
    send, answer, look_up = config["send"], config["answer"], config.get("look_up", {})
    yield from (("send.path", found, SCOPE) for found in PLACEHOLDER.findall(send["path"]))
    if "body" in send:
        yield "send.body", send["body"], SCOPE
    not_expressions = {"confirmed", "pending", "failed", "trust_id_alone"}
    yield from ((f"answer.{name}", answer[name], ()) for name in answer if name not in not_expressions)
    for number, rule in enumerate(config.get("known_errors", ())):
        if "when" in rule:
            yield f"known_errors[{number}].when", rule["when"], ()
    for by, scope in (("key", SCOPE), ("subject", SCOPE), ("recent", RECENT_SCOPE)):
        question = look_up.get(by, {"path": ""})
        yield from ((f"look_up.{by}.path", found, scope) for found in PLACEHOLDER.findall(question["path"]))
        yield from ((f"look_up.{by}.query.{k}", v, scope) for k, v in question.get("query", {}).items())
        if "absent" in question:
            yield f"look_up.{by}.absent.when", question["absent"]["when"], ()
    webhook = config.get("webhook", {})
    yield from ((f"look_up.{k}", look_up[k], ()) for k in ("items", "more", "cursor") if k in look_up)
    yield from ((f"webhook.{k}", webhook[k], ()) for k in ("topic", "entries", "at") if k in webhook)
    for where, section in (("look_up", look_up), ("webhook", webhook)):
        for name, expression in section.get("entry", {}).items():
            if name not in ("roles", "states"):
                yield f"{where}.entry.{name}", expression, ()


def _functions(tree: Mapping[str, Any]) -> set[str]:
    found = {tree["value"]} if tree["type"] == "function_expression" else set()
    return found.union(*(_functions(child) for child in tree["children"] if isinstance(child, dict)))


def _roots(tree: Mapping[str, Any]) -> set[str]:
    """The names that an expression reads from its document itself: a misspelt one would silently be null."""
    if tree["type"] == "field":
        return {tree["value"]}
    children = [child for child in tree["children"] if isinstance(child, dict)]
    side_by_side = ("multi_select_dict", "multi_select_list", "key_val_pair", "function_expression")
    if tree["type"] in (*side_by_side, "or_expression", "and_expression", "not_expression", "comparator"):
        return set().union(*(_roots(child) for child in children))
    if tree["type"] == "expref":
        return set()
    return _roots(children[0]) if children else set()


def _bad_headers(config: Mapping[str, Any]) -> Iterator[str]:
    for name, value in config.get("headers", {}).items():
        for found in PLACEHOLDER.findall(value):
            if found not in HEADER_WORDS:
                yield f"headers.{name}: {{{found}}} is unknown; a header can hold {{secret}} and {{account}}"
        if not (name + value).isascii() or not (name + value).isprintable() or ":" in name or " " in name:
            yield f"headers.{name}: only visible ASCII characters can be sent"


def _contradictions(config: Mapping[str, Any]) -> Iterator[str]:
    yield from _about_answers(config["answer"])
    yield from _about_statuses(config)
    if "look_up" in config:
        yield from _about_look_up(config["look_up"])
    if "webhook" in config:
        yield from _about_webhook(config["webhook"], look_up=config.get("look_up"))


def _about_money(where: str, section: Mapping[str, Any]) -> Iterator[str]:
    if "amount" in section and "amount_minor" in section:
        yield f"{where}: give amount (a decimal) or amount_minor (an integer), not both"
    if "amount" in section and "currency" not in section:
        yield f"{where}: a decimal amount needs its currency"


def _about_answers(answer: Mapping[str, Any]) -> Iterator[str]:
    yield from _about_money("answer", answer)
    states = [state for name in ("confirmed", "pending", "failed") for state in answer.get(name, ())]
    if ("status" in answer) != ("confirmed" in answer):
        yield "answer: status and confirmed go together; without them every fitting 2xx is a confirmation"
    if "status" not in answer and ("pending" in answer or "failed" in answer):
        yield "answer: pending and failed need status"
    if len({repr(state) for state in states}) < len(states):
        yield "answer: a state stands in two of confirmed, pending and failed"


def _about_statuses(config: Mapping[str, Any]) -> Iterator[str]:
    if set(config.get("refused", ())) & set(config.get("no_answer", ())):
        yield "refused and no_answer: a status stands in both"
    for number, rule in enumerate(config.get("known_errors", ())):
        options = KNOWN_ERRORS[rule["result"]]
        if rule.get("reason", options[0]) not in options:
            yield f"known_errors[{number}].reason: for {rule['result']} it is one of {', '.join(options)}"
        if rule["status"] < 300 and "when" not in rule:
            yield f"known_errors[{number}]: a success status needs a when, or nothing would ever be confirmed"


def _about_look_up(look_up: Mapping[str, Any]) -> Iterator[str]:
    yield from _about_entry("look_up.entry", look_up["entry"])
    if ("cursor" in look_up) != ("cursor_param" in look_up) or ("more" in look_up and "cursor" not in look_up):
        yield "look_up: cursor and cursor_param go together, and more needs both"
    if not ("key" in look_up or "subject" in look_up):
        yield "look_up: say how to ask, by key or by subject"


def _about_webhook(webhook: Mapping[str, Any], *, look_up: Mapping[str, Any] | None) -> Iterator[str]:
    if "entry" in webhook:
        yield from _about_entry("webhook.entry", webhook["entry"])
    elif look_up is None:
        yield "webhook: without look_up it needs an entry of its own, to say how one is read"


def _about_entry(where: str, entry: Mapping[str, Any]) -> Iterator[str]:
    yield from _about_money(where, entry)
    for name, table in (("role", "roles"), ("status", "states")):
        if (name in entry) != (table in entry):
            yield f"{where}: {name} and {table} go together"
