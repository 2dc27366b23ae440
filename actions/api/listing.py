"""Lists of intents: filters from the query, pages by a keyset, newest first."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from django.core import signing
from django.db.models import Q, QuerySet, Value
from django.db.models.functions import StrIndex
from django.http import QueryDict

from actions.api.fields import read_time
from actions.canonical import BadJson, canonical, check_text
from actions.errors import BadQuery
from actions.models import Intent
from actions.statuses import SETTLED, Status
from actions.subjects import BadSubject, canonical_subject

DEFAULT_LIMIT, MAX_LIMIT = 50, 100
_SALT: Final = "landed.api.intents"


@dataclass(frozen=True)
class Page:
    intents: list[Intent]
    next_cursor: str | None


def page(found: "QuerySet[Intent]", query: QueryDict) -> Page:
    """The page of `found` that `query` asks for, in one database query. Raises BadQuery."""
    asked = _single_values(query)
    for name, text in asked.items():
        if name in _FILTERS:
            found = _FILTERS[name](found, text)
    if cursor := asked.get("cursor"):
        found = _after(found, cursor)
    limit = _limit(asked.get("limit"))
    rows = list(found.order_by("-created_at", "-id")[: limit + 1])
    more = len(rows) > limit
    return Page(rows[:limit], _cursor(rows[limit - 1]) if more else None)


def _single_values(query: QueryDict) -> dict[str, str]:
    """Each parameter's text. Raises BadQuery for an unknown one: a mistyped filter must not list everything."""
    known = (*_FILTERS, "cursor", "limit")
    found = {}
    for name, values in query.lists():
        if name not in known:
            raise BadQuery(f"{name!r} is unknown; there are {', '.join(known)}.", known=list(known))
        if len(values) > 1 and name != "status":
            raise BadQuery(f"{name} is given twice.")
        found[name] = ",".join(values)
        try:
            check_text(found[name])
        except BadJson as bad:
            raise BadQuery(f"{name}: {bad}") from None
    return found


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= MAX_LIMIT):
        raise BadQuery(f"limit: a whole number from 1 to {MAX_LIMIT}.")
    return int(text)


# --- the cursor: the keyset of the last row that was shown, signed so that nobody builds on its form


def _cursor(last: Intent) -> str:
    return signing.dumps([last.created_at.isoformat(), str(last.pk)], salt=_SALT)


def _after(found: "QuerySet[Intent]", cursor: str) -> "QuerySet[Intent]":
    try:
        at, pk = signing.loads(cursor, salt=_SALT)
    except signing.BadSignature:
        raise BadQuery("cursor: not one of ours; pass on next_cursor as it came.") from None
    created = datetime.fromisoformat(at)
    # The first condition says nothing new, but an index can begin there.
    return found.filter(Q(created_at__lte=created) & (Q(created_at__lt=created) | Q(pk__lt=UUID(pk))))


# --- filters


def _by_status(found: "QuerySet[Intent]", text: str) -> "QuerySet[Intent]":
    wanted = {word.strip() for word in text.split(",")}
    if unknown := wanted - set(Status.values):
        raise BadQuery(f"status: {min(unknown)!r} is unknown; there are {', '.join(Status.values)}.")
    return found.filter(status__in=sorted(wanted))


def _by_settled(found: "QuerySet[Intent]", text: str) -> "QuerySet[Intent]":
    if text not in ("true", "false"):
        raise BadQuery("settled: true or false.")
    settled = Q(status__in=list(SETTLED))
    return found.filter(settled if text == "true" else ~settled)


def _by_subject(found: "QuerySet[Intent]", text: str) -> "QuerySet[Intent]":
    try:
        return found.filter(subject=canonical_subject(text))
    except BadSubject as bad:
        raise BadQuery(f"subject: {bad}") from None


def _by_run(found: "QuerySet[Intent]", text: str) -> "QuerySet[Intent]":
    # Canonical JSON spells a member in one way only, and inside a text its quotes are escaped; so this finds the
    # member and nothing else. An index function and not LIKE, which folds case on SQLite.
    member = canonical({"run": text})[1:-1]
    return found.annotate(_run=StrIndex("context", Value(member))).filter(_run__gt=0)


def _by_updated_after(found: "QuerySet[Intent]", text: str) -> "QuerySet[Intent]":
    try:
        # An unescaped + arrives as a space; nothing else can be meant by one here.
        return found.filter(updated_at__gt=read_time(text.strip().replace(" ", "+")))
    except ValueError as wrong:
        raise BadQuery(f"updated_after: {wrong}") from None


_FILTERS: Final[Mapping[str, Callable[["QuerySet[Intent]", str], Any]]] = {
    "status": _by_status,
    "settled": _by_settled,
    "kind": lambda found, text: found.filter(kind__name=text),
    "subject": _by_subject,
    "request_key": lambda found, text: found.filter(request_key=text),
    "run": _by_run,
    "updated_after": _by_updated_after,
}
