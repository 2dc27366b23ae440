"""Reads what a service says that it saw, field by field. Nothing is coerced."""

from collections.abc import Mapping
from typing import Any, Final

from actions import money
from actions.api.claim_fields import plain
from actions.api.fields import Fields, refuse_unknown
from actions.connectors.base import Entry
from actions.errors import Invalid
from reconciliation.api.schemas import LONGEST_TEXT, MOST_ENTRIES
from reconciliation.by_service import Said
from reconciliation.models import EntryRole, EntryState

EVIDENCE: Final = ("check", "complete", "problem", "source", "started_at", "entries")
ENTRY: Final = ("entry_id", "role", "state", "key", "subject", "amount", "currency", "booked_at")
_LONGEST_ID: Final = 255
_LONGEST_CHECK: Final = 1_000


def read_evidence(body: Mapping[str, Any]) -> Said:
    """Raises Invalid, with every field that can't be taken; those of an entry as `entries[3].amount`."""
    errors: list[dict[str, str]] = []
    fields = Fields(body, errors)
    check = _text(fields, "check", _LONGEST_CHECK)
    complete = body.get("complete")
    if type(complete) is not bool:
        fields.wrong("complete", "true or false: whether everything that it could be was looked at.")
    problem = _text(fields, "problem", LONGEST_TEXT)
    if complete is True and problem:
        fields.wrong("problem", "A look that is complete has no problem.")
    if complete is False and not problem:
        fields.wrong("problem", "Missing: why it is not complete.")
    source = _text(fields, "source", LONGEST_TEXT)
    if not source and "source" not in {error["field"] for error in errors}:
        fields.wrong("source", "Missing: where you looked.")
    started_at = fields.time("started_at")
    entries = _entries(body, fields, errors)
    refuse_unknown(body, EVIDENCE, errors)
    if errors:
        raise Invalid(errors)
    return Said(
        content=plain({name: value for name, value in body.items() if name != "check"}),
        entries=entries,
        complete=bool(complete),
        source=source or "",
        check=check,
        started_at=started_at,
    )


def _text(fields: Fields, name: str, longest: int) -> str | None:
    found = fields.optional_text(name)
    if found is not None and len(found) > longest:
        fields.wrong(name, f"Longer than {longest} characters.")
    return found


def _entries(body: Mapping[str, Any], fields: Fields, errors: list[dict[str, str]]) -> list[Entry]:
    given = body.get("entries")
    if not isinstance(given, list):
        fields.wrong("entries", "A list; [] when there are none.")
        return []
    if len(given) > MOST_ENTRIES:
        fields.wrong("entries", f"More than {MOST_ENTRIES}.")
        return []
    found, ids = [], set[str | None]()
    for number, one in enumerate(given):
        if not isinstance(one, dict):
            fields.wrong(f"entries[{number}]", "An object.")
            continue
        wrong: list[dict[str, str]] = []
        entry = _entry(one, wrong)
        if entry.entry_id is not None and entry.entry_id in ids:
            wrong.append({"field": "entry_id", "message": "It appears twice."})
        ids.add(entry.entry_id)
        found.append(entry)
        errors += [{"field": f"entries[{number}].{e['field']}", "message": e["message"]} for e in wrong]
    return found


def _entry(one: Mapping[str, Any], errors: list[dict[str, str]]) -> Entry:
    fields = Fields(one, errors)
    minor, currency = _amount(one, fields)
    found = Entry(
        entry_id=_text(fields, "entry_id", _LONGEST_ID) or None,
        role=_one_of(one, fields, "role", EntryRole.values),
        state=_one_of(one, fields, "state", EntryState.values),
        key=_text(fields, "key", _LONGEST_ID) or None,
        subject=_text(fields, "subject", LONGEST_TEXT) or None,
        amount_minor=minor,
        currency=currency,
        booked_at=fields.time("booked_at"),
        raw=one,
    )
    refuse_unknown(one, ENTRY, errors)
    return found


def _one_of(one: Mapping[str, Any], fields: Fields, name: str, known: list[str]) -> Any:
    value = one.get(name)
    if type(value) is not str or value not in known:
        fields.wrong(name, f"One of {', '.join(known)}.")
    return value


def _amount(one: Mapping[str, Any], fields: Fields) -> tuple[int | None, str | None]:
    """In minor units, with its currency: both, or none of them."""
    amount, currency = fields.amount("amount"), fields.optional_text("currency")
    if amount is None or not currency:
        for name in ("amount", "currency"):
            if one.get(name) in (None, "") and (amount or currency):
                fields.wrong(name, "Missing: an amount and its currency come together.")
        return None, None
    try:
        return money.to_minor(amount, currency), currency
    except money.BadAmount as wrong:
        fields.wrong("amount", str(wrong))
        return None, None
