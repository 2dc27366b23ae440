"""All intents, newest first; and what the search in the header finds among them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.http import HttpResponse

from actions import times
from actions.models import Intent
from reconciliation.list_forms import IntentFilter
from reconciliation.models import Review
from reconciliation.views import csv_out, paging, searching
from reconciliation.views.frame import DeskRequest, page, show
from reconciliation.views.paging import Page
from reconciliation.views.searching import Found

COLUMNS = (
    "intent", "what", "order", "amount", "currency", "status", "status since", "agent", "external id",
    "idempotency key", "request key", "settled amount", "settled currency", "settled", "proposed", "open case",
)  # fmt: skip
_BATCH = 500


@dataclass(frozen=True)
class Row:
    """An intent, with the case that is open about it. `exact`: what was looked for names it itself."""

    intent: Intent
    case: Review | None
    exact: bool = False


@page
def intents(request: DeskRequest) -> HttpResponse:
    form, after = IntentFilter(request.GET), request.GET.get("after", "")
    query = form.cleaned_data.get("q", "").strip()
    found = searching.search(query) if query else None
    shown = hits_of(found, form) if found else page_of(matching(form), after)
    kept = form.understood
    context: dict[str, Any] = {
        "here": "intents",
        "form": form,
        "page": shown,
        "found": found,
        "lead": _lead(found, shown.rows),
        "most": searching.MOST,
        "query": query,
        "after": after,
        "first": paging.link(kept),
        "following": paging.link(kept, after=shown.following),
        "filtered": bool(kept.keys() - {"q"}),
    }
    return show(request, "intents.html", context)


@page
def intents_csv(request: DeskRequest) -> HttpResponse:
    """The list as filtered, or what the search found, for a spreadsheet."""
    form = IntentFilter(request.GET)
    query = form.cleaned_data.get("q", "").strip()
    found = hits_of(searching.search(query), form).rows if query else _all_of(matching(form))
    return csv_out.streamed("intents", COLUMNS, map(cells, found), now=times.now())


def _lead(found: Found | None, rows: Sequence[Row]) -> Row | None:
    """The one intent that was named exactly, if a case is open about it: that is what the person came for."""
    named = [row for row in rows if row.exact]
    return named[0] if found and len(found.exact) == len(named) == 1 and named[0].case else None


def matching(form: IntentFilter) -> QuerySet[Intent]:
    asked = form.cleaned_data
    wanted = {
        "status": asked.get("status") or None,
        "kind": form.id_of("kind"),
        "agent": form.id_of("agent"),
        "disputed": asked.get("disputed") or None,
    }
    return Intent.objects.filter(**{name: value for name, value in wanted.items() if value is not None})


def page_of(found: QuerySet[Intent], after: str, *, per_page: int | None = None) -> Page[Row]:
    """Ids are in order of time, so that the primary key alone carries the list."""
    cursor = paging.decode(after, parts=1)
    last = _uuid(str(cursor[0])) if cursor else None
    if last is not None:
        found = found.filter(pk__lt=last)
    size = per_page or paging.PER_PAGE
    # No joins: SQLite would begin with the kind, and sort all of its intents.
    newest = found.prefetch_related("kind", "agent").order_by("-pk")
    shown, more = paging.cut(newest[: size + 1], per_page=size)
    return Page(rows(shown), paging.encode(str(shown[-1].pk)) if more else "")


def hits_of(found: Found, form: IntentFilter) -> Page[Row]:
    """What the search found and the filters let through, in the search's own order. One page."""
    by_id = _related(matching(form)).in_bulk(found.ids)
    return Page(rows([by_id[pk] for pk in found.ids if pk in by_id], exact=found.exact), "")


def _related(found: QuerySet[Intent]) -> QuerySet[Intent]:
    return found.select_related("kind", "agent")


def rows(shown: Sequence[Intent], *, exact: Sequence[UUID] = ()) -> list[Row]:
    """One query more, for the open cases."""
    cases = Review.objects.filter(intent__in=[intent.pk for intent in shown], closed_at__isnull=True)
    by_intent = {case.intent_id: case for case in cases.select_related("holder", "owner")}
    named = set(exact)
    return [Row(intent, by_intent.get(intent.pk), intent.pk in named) for intent in shown]


def _all_of(found: QuerySet[Intent]) -> Iterator[Row]:
    """Batch after batch: no query is long, and no list is large."""
    after = ""
    while True:
        batch = page_of(found, after, per_page=_BATCH)
        yield from batch.rows
        after = batch.following
        if not after:
            return


def cells(row: Row) -> Sequence[str]:
    intent = row.intent
    return (
        str(intent.pk),
        intent.kind.title,
        intent.subject,
        intent.amount or "",
        intent.currency,
        f"{intent.status}, disputed" if intent.disputed else intent.status,
        csv_out.time(intent.status_since),
        intent.agent.name,
        intent.external_id,
        intent.idempotency_key,
        intent.request_key or "",
        csv_out.amount(intent.settled_amount_minor, intent.settled_currency or intent.currency),
        (intent.settled_currency or intent.currency) if intent.settled_amount_minor is not None else "",
        csv_out.time(intent.settled_at),
        csv_out.time(intent.created_at),
        str(row.case.pk) if row.case else "",
    )


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
