"""A webhook of a JSON API: signed by Standard Webhooks, read by the configuration. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from actions.canonical import read_json
from actions.connectors.base import Entry, Notice, Target, Unverified
from actions.connectors.http_json.look_up import entry_of
from actions.connectors.values import Unreadable, evaluate, moment, word
from actions.connectors.webhooks import each, standard


def hear(target: Target, *, headers: Mapping[str, str], body: bytes, secrets: Sequence[str], now: datetime) -> Notice:
    """Raises Unverified; ValueError (BadJson, Unreadable) for a genuine body that says nothing readable."""
    spec = target.config.get("webhook")
    if spec is None:
        raise Unverified(f"The configuration of {target.name} has no webhook section.")
    delivery_id, sent_at = standard(headers, body, secrets, now)
    document = read_json(body)
    entries = _entries(target.config, evaluate(spec["entries"], document))
    return Notice(
        delivery_id=delivery_id,
        sent_at=sent_at,
        topic=(word(evaluate(spec["topic"], document)) or "") if "topic" in spec else "",
        keys=each(entry.key for entry in entries),
        subjects=each(entry.subject for entry in entries),
        external_ids=each(entry.entry_id for entry in entries),
        entries=entries,
        as_of=moment(evaluate(spec["at"], document)) if "at" in spec else None,
    )


def _entries(config: Mapping[str, Any], found: Any) -> tuple[Entry, ...]:
    """One, a list of them, or none: some events are about nothing that a ledger has."""
    spec = config["webhook"].get("entry") or config["look_up"]["entry"]
    items = found if isinstance(found, list) else [] if found is None else [found]
    entries = tuple(entry_of(spec, item) for item in items)
    if not all(entry.entry_id or entry.key or entry.subject for entry in entries):
        raise Unreadable("an entry names nothing that it is about")
    return entries
