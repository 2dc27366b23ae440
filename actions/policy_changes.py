"""What may be written into a policy, whoever writes it: the admin, or `apply_policy`.

Every function looks at unsaved instances and returns sentences for people; empty means nothing is wrong.
"""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Any

import jmespath
from django.db.models import Q
from jmespath.exceptions import JMESPathError
from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError

from actions import limit_rules
from actions.connectors import registry
from actions.connectors.base import HearsWebhooks
from actions.models import Agent, Downstream, Intent, Kind, LookUp
from actions.statuses import UNSETTLED, Status

Faults = dict[str, list[str]]


def count_unsettled(**owner: Any) -> int:
    """How many intents of `owner` (`kind=…` or `downstream=…`) may still be sent, looked up or corrected."""
    return Intent.objects.filter(Q(status__in=list(UNSETTLED)) | Q(disputed=True), **owner).count()


def refuse_stranding(before: Downstream, after: Downstream) -> list[str]:
    """Why `before` can't become `after` now: look-ups for its unsettled intents would ask other books.

    The caller holds the downstream's row (`select_for_update`), so that two changes can't pass each other. An
    intent that is recorded in this very moment was not sent under the old identity, so it is not stranded.
    """
    changed = [name for name in Downstream.IDENTITY if getattr(before, name) != getattr(after, name)]
    unsettled = count_unsettled(downstream=before) if changed else 0
    if not unsettled:
        return []
    return [
        f"{_intents(unsettled)} of this downstream {_are(unsettled)} not settled; until then "
        f"these can't change: {', '.join(changed)}. Clone the downstream instead."
    ]


def refuse_moving(before: Kind, after: Kind) -> list[str]:
    """Why a kind can't go to another downstream now."""
    if before.downstream_id == after.downstream_id:
        return []
    unsettled = count_unsettled(kind=before)
    if not unsettled:
        return []
    return [
        f"{_intents(unsettled)} of this kind {_are(unsettled)} not settled; until then its downstream can't change."
    ]


def _intents(count: int) -> str:
    return f"{count} intent{'' if count == 1 else 's'}"


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def faults_of_downstream(downstream: Downstream) -> Faults:
    """Field → what is wrong with it, beyond what the fields themselves check."""
    from actions.connectors import registry  # noqa: PLC0415  loads every connector

    if not isinstance(downstream.config, dict):
        return {"config": ["A JSON object, such as {}."]}
    try:
        connector = registry.get(downstream.connector)
    except KeyError as unknown:
        return {"connector": [str(unknown.args[0])]}
    wrong = connector.check_config(downstream.config)
    return {"config": wrong} if wrong else {}


def warnings_about_downstream(downstream: Downstream) -> list[str]:
    """What is allowed, but should be known to whoever saves it."""
    found = []
    hears = bool(downstream.webhook_secret_env)
    if downstream.look_up == LookUp.NONE and not downstream.dedupes:
        who = "only its webhooks and people" if hears else "only people"
        found.append(f"{downstream.name} can't be looked up and doesn't dedupe: {who} settle its unknown intents.")
    if downstream.secret_env and not os.environ.get(downstream.secret_env):
        found.append(
            f"The environment variable {downstream.secret_env} is not set in this web process; "
            "the workers need it to send and to look up."
        )
    for name in filter(None, (downstream.webhook_secret_env, downstream.webhook_old_secret_env)):
        if not os.environ.get(name):
            found.append(f"The environment variable {name} is not set in this web process, which hears its webhooks.")
    if hears and downstream.connector in registry.names() and not _hears(downstream.connector):
        found.append(f"The connector {downstream.connector} can't read webhooks: they are refused.")
    return found


def _hears(connector: str) -> bool:
    return isinstance(registry.get(connector), HearsWebhooks)


def faults_of_kind(kind: Kind) -> Faults:
    """Field → what is wrong with it, beyond what the fields themselves check."""
    found: Faults = {}
    if wrong := _schema_fault(kind.params_schema):
        found["params_schema"] = [wrong]
    for name in ("subject_from", "payee_from", "customer_from"):
        if wrong := _expression_fault(getattr(kind, name)):
            found[name] = [wrong]
    if wrong := _pattern_fault(kind.subject_pattern):
        found["subject_pattern"] = [wrong]
    if wrong := _texts_fault(kind.customer_texts):
        found["customer_texts"] = [wrong]
    return found


def faults_of_agent(agent: Agent, *, kinds: Iterable[str]) -> Faults:
    """Field → what is wrong with it, beyond what the fields themselves check. `kinds`: the names there are."""
    unknown = sorted(limit_rules.kinds_named(agent.limits) - set(kinds))
    # A limit on a kind that doesn't exist would limit nothing.
    return {"limits": [f"kinds.{name}: There is no such kind." for name in unknown]} if unknown else {}


def refuse_renaming(before: Kind, after: Kind) -> list[str]:
    """Why a kind can't have another name now: limits of agents name it, and would limit nothing then."""
    if before.name == after.name:
        return []
    limits = Agent.objects.exclude(limits={}).values_list("name", "limits")
    naming = sorted(name for name, found in limits if before.name in limit_rules.kinds_named(found))
    return [f"Limits of these agents name it, so its name can't change: {', '.join(naming)}."] if naming else []


def _schema_fault(schema: Any) -> str:
    if not isinstance(schema, dict):
        return "A JSON object, such as {}."
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as wrong:
        return f"Not a JSON Schema (2020-12): {wrong.message} at {wrong.json_path}."
    # A schema that refers elsewhere would make recording wait for, and trust, another server.
    away = [ref for ref in _references(schema) if not ref.startswith("#")]
    return f"Only references inside the schema (#…), not {away[0]}." if away else ""


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("$ref", "$dynamicRef") and isinstance(inner, str):
                yield inner
            yield from _references(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _references(inner)


def _expression_fault(text: str) -> str:
    try:
        if text:
            jmespath.compile(text)
    except JMESPathError as wrong:
        return f"Not a JMESPath expression: {' '.join(str(wrong).split())}"
    return ""


def _pattern_fault(text: str) -> str:
    try:
        re.compile(text)
    except re.error as wrong:
        return f"Not a regular expression: {wrong}."
    return ""


def _texts_fault(texts: Any) -> str:
    if not isinstance(texts, dict) or not all(isinstance(text, str) for text in texts.values()):
        return "A JSON object: status → sentence."
    unknown = sorted(set(texts) - set(Status.values))
    return f"Not a status: {', '.join(unknown)}." if unknown else ""
