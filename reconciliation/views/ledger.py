"""What the books show, newest first, and which intent explains each entry."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import forms
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.http import HttpResponse

from actions import times
from actions.models import Downstream, Intent
from reconciliation import look_back
from reconciliation.entries import HAS_EXTERNAL_ID
from reconciliation.models import EntryRole, EntryState, LedgerEntry, Match, MatchRole, Purpose, Review
from reconciliation.views import paging
from reconciliation.views.frame import DeskRequest, page, show
from reconciliation.views.paging import Page

TABS = {"all": "All", "orphans": "Orphans", "duplicates": "Duplicates"}
EMPTY = {
    "all": "Nothing was seen in any book yet.",
    "orphans": "Every entry is explained by an intent.",
    "duplicates": "Nothing was booked twice.",
}


@dataclass(frozen=True)
class Row:
    """An entry and what explains it. `how`: in words; `case`: the open case about it."""

    entry: LedgerEntry
    intent: Intent | None
    how: str
    case: Review | None
    settled_differs: bool


class EntryFilter(forms.Form):
    """The list's filters. What is not understood filters nothing."""

    q = forms.CharField(
        required=False,
        max_length=255,
        widget=forms.TextInput(
            attrs={"placeholder": "Entry, key or order", "autocomplete": "off", "spellcheck": "false"}
        ),
    )
    downstream = forms.ModelChoiceField(
        Downstream.objects.all(), required=False, to_field_name="name", empty_label="Any downstream", blank=True
    )


@page
def ledger(request: DeskRequest) -> HttpResponse:
    form, now = EntryFilter(request.GET), times.now()
    form.is_valid()  # what is not understood filters nothing
    asked = form.cleaned_data
    tab = request.GET.get("tab", "all")
    tab = tab if tab in TABS else "all"
    query, downstream = asked.get("q", "").strip(), asked.get("downstream")
    kept = [(key, value) for key, value in request.GET.items() if value and key not in ("after", "tab")]
    context: dict[str, Any] = {
        "here": "ledger",
        "now": now,
        "form": form,
        "tab": tab,
        "tabs": [(name, title, urlencode([("tab", name), *kept])) for name, title in TABS.items()],
        "page": page_of(matching(tab, query, downstream), request.GET.get("after", "")),
        "kept": urlencode([("tab", tab), *kept]),
        "query": query,
        "filtered": bool(kept),
        "empty": EMPTY[tab],
        "behind": look_back.behind(now),
        "catching_up": look_back.catching_up(now),
    }
    return show(request, "ledger.html", context)


def matching(tab: str, query: str, downstream: Downstream | None) -> QuerySet[LedgerEntry]:
    found = LedgerEntry.objects.all()
    if downstream is not None:
        found = found.filter(downstream=downstream)
    if tab == "orphans":
        found = found.filter(pk__in=_with_open_case().values("entry"))
    if tab == "duplicates":
        found = found.filter(pk__in=_duplicates())
    return found.filter(pk__in=_named(query)) if query else found


def _with_open_case() -> QuerySet[Review]:
    return Review.objects.filter(purpose=Purpose.ENTRY, closed_at__isnull=True)


def _duplicates() -> QuerySet[Any]:
    """Judged as duplicates; or, not judged yet, another live effect under one of our keys than the first.

    Both parts ride on what is open: what is tied or answered needs no explanation any more.
    """
    judged = Match.objects.filter(role=MatchRole.DUPLICATE, released_at__isnull=True).values("entry")
    second = _second_effects()
    unjudged = second.filter(explain_at__isnull=False).values("pk")
    in_a_case = second.filter(pk__in=_with_open_case().order_by().values("entry")).values("pk")
    return judged.order_by().union(unjudged, in_a_case)


def _second_effects() -> QuerySet[LedgerEntry]:
    """Live effects under a key of ours that don't settle it, beside one that does or was seen earlier."""
    ours = Intent.objects.filter(downstream=OuterRef("downstream"), idempotency_key=OuterRef("key"))
    settles = Exists(Match.objects.filter(entry=OuterRef("pk"), role=MatchRole.SETTLES, released_at__isnull=True))
    live = LedgerEntry.objects.filter(role=EntryRole.EFFECT).exclude(state=EntryState.FAILED).order_by()
    same_key = live.exclude(key="").filter(downstream=OuterRef("downstream"), key=OuterRef("key"))
    others = same_key.exclude(pk=OuterRef("pk")).filter(Q(pk__lt=OuterRef("pk")) | settles)
    return live.exclude(key="").filter(~settles, Exists(ours), Exists(others))


def _named(query: str) -> QuerySet[Any]:
    """An entry's id, a key or an order: exactly. Each is asked for by itself, in every book's own index."""
    books = LedgerEntry.objects.filter(downstream__in=list(Downstream.objects.values_list("pk", flat=True)))
    by = (books.filter(book="api", entry_id=query), books.filter(key=query), books.filter(subject=query))
    first, *others = (found.order_by().values("pk") for found in by)
    return first.union(*others)


def page_of(found: QuerySet[LedgerEntry], after: str) -> Page[Row]:
    """Ids are in the order in which entries were first seen, so that the primary key alone carries the list."""
    cursor = paging.decode(after, parts=1)
    if cursor and isinstance(cursor[0], int):
        found = found.filter(pk__lt=cursor[0])
    entries, more = paging.cut(found.select_related("downstream").order_by("-pk")[: paging.PER_PAGE + 1])
    return Page(rows(entries), paging.encode(entries[-1].pk) if more else "")


def rows(entries: Sequence[LedgerEntry]) -> list[Row]:
    """Four queries, however many entries there are."""
    ids = [entry.pk for entry in entries]
    ties = {
        tie.entry_id: tie
        for tie in Match.objects.filter(entry__in=ids, released_at__isnull=True).select_related("intent__kind")
    }
    cases = {case.entry_id: case for case in _with_open_case().filter(entry__in=ids)}
    # Of whatever downstream: told apart below, or an index on the downstream would look like the better one.
    mine = Intent.objects.select_related("kind")
    answered = mine.filter(HAS_EXTERNAL_ID, external_id__in={entry.entry_id for entry in entries})
    by_id = {(intent.downstream_id, intent.external_id): intent for intent in answered}
    keyed = mine.filter(idempotency_key__in={entry.key for entry in entries if entry.key})
    by_key = {(intent.downstream_id, intent.idempotency_key): intent for intent in keyed}
    return [
        _row(
            entry,
            ties.get(entry.pk),
            by_id.get((entry.downstream_id, entry.entry_id)),
            by_key.get((entry.downstream_id, entry.key)),
            cases.get(entry.pk),
        )
        for entry in entries
    ]


def _row(
    entry: LedgerEntry, tie: Match | None, answered: Intent | None, keyed: Intent | None, case: Review | None
) -> Row:
    intent: Intent | None
    if case is not None:
        intent, how = None, "no intent"
    elif tie is not None:
        intent, how = tie.intent, tie.get_role_display()
    elif answered is not None:
        intent, how = answered, "its own answer names it"
    elif keyed is not None:
        intent, how = keyed, "bears its key"
    else:
        intent, how = None, "nothing yet" if entry.explain_at else ""
    settled = (entry.settled_amount_minor, entry.settled_currency or entry.currency)
    differs = settled[0] is not None and settled != (entry.amount_minor, entry.currency)
    return Row(entry, intent, how, case, differs)
