"""Money left to do: what has to come back, or is still to be sent, after somebody established what happened."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from django import forms
from django.contrib import messages
from django.db.models import Count, Q, QuerySet, Sum
from django.http import HttpResponse
from django.shortcuts import redirect

from actions import money as amounts
from actions import times
from actions.errors import LandedError
from actions.models import Intent
from reconciliation.models import Difference, LeftToDo
from reconciliation.reviews import differences
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views import csv_out, paging, refusals
from reconciliation.views.frame import DeskRequest, action, page, show
from reconciliation.views.names import names_of
from reconciliation.views.paging import Page
from reconciliation.views.refusals import Refusal

MOST_RESOLVED = 20
MOST_EXPORTED = csv_out.MOST + 1
COLUMNS = ("what", "amount", "currency", "order", "kind", "intent", "entry", "since", "decided by")
COLUMNS_WHEN_DONE = ("resolved", "resolved by", "note")


@dataclass(frozen=True)
class Row:
    """One thing to do, with the names of who decided it and who did it."""

    left: Difference
    decided_by: str
    resolved_by: str = ""
    note: str = ""


@dataclass(frozen=True)
class Total:
    """What is open of one sort in one currency."""

    what: str
    currency: str
    count: int
    amount_minor: int | None


class ResolveForm(forms.Form):
    note = forms.CharField(
        max_length=differences.MAX_NOTE,
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
        error_messages={"required": "Say in the note what was done about it."},
    )


@page
def money(request: DeskRequest) -> HttpResponse:
    return _show(request)


@action
def resolve(request: DeskRequest, difference_id: int) -> HttpResponse:
    form = ResolveForm(request.POST)
    if not form.is_valid():
        return _show(request, tried=difference_id, form=form, status=422)
    try:
        found = differences.resolve(difference_id, person=request.user, note=form.cleaned_data["note"])
    except LandedError as refused:
        return _show(request, tried=difference_id, form=form, refusal=_words(refused))
    what = LeftToDo(found.what).label
    shown = amounts.describe(found.amount_minor, found.currency)
    messages.success(request, f"Resolved: {what}, {shown}.")
    return redirect("money")


def _words(refused: LandedError) -> Refusal:
    said = refusals.words(refused)
    return Refusal(title="Nothing was resolved.", text=said.text or said.title, status=said.status)


def _show(
    request: DeskRequest,
    *,
    tried: int = 0,
    form: ResolveForm | None = None,
    refusal: Refusal | None = None,
    status: int = 200,
) -> HttpResponse:
    found = differences.open_ones()
    shown = _page_of(found, request.GET.get("after", ""))
    done = _with_relations(Difference.objects.filter(resolved_at__isnull=False))
    context: dict[str, Any] = {
        "here": "money",
        "page": Page(rows(shown.rows), shown.following),
        "totals": totals(),
        "resolved": rows(list(done.order_by("-resolved_at", "-pk")[:MOST_RESOLVED])),
        "tried": tried,
        "form": form or ResolveForm(),
        "refusal": refusal,
        "after": request.GET.get("after", ""),
    }
    return show(request, "money.html", context, status=refusal.status if refusal else status)


def _page_of(found: QuerySet[Difference], after: str) -> Page[Difference]:
    """The oldest first."""
    cursor = paging.decode(after, parts=2)
    if cursor is not None:
        try:
            at, pk = paging.moment(cursor[0]), int(cursor[1])
            found = found.filter(Q(opened_at__gt=at) | Q(opened_at=at, pk__gt=pk))
        except ValueError:
            pass
    shown, more = paging.cut(found[: paging.PER_PAGE + 1])
    last = shown[-1] if shown else None
    return Page(shown, paging.encode(last.opened_at.isoformat(), last.pk) if more and last else "")


def _with_relations(found: QuerySet[Difference]) -> QuerySet[Difference]:
    return found.select_related("intent__kind", "intent__downstream", "entry", "decision__person", "note")


def totals() -> list[Total]:
    """Sums of what is open, per sort and currency; one query."""
    found = Difference.objects.filter(resolved_at__isnull=True).values("what", "currency")
    summed = found.annotate(n=Count("pk"), amount=Sum("amount_minor")).order_by("what", "currency")
    return [Total(LeftToDo(row["what"]).label, row["currency"], row["n"], row["amount"]) for row in summed]


def rows(found: Sequence[Difference]) -> list[Row]:
    """One query more, for the names of those who resolved something."""
    names = names_of(left.resolved_by for left in found)
    return [
        Row(
            left=left,
            decided_by=name_of(left.decision.person) if left.decision else "",
            resolved_by=names.get(left.resolved_by, left.resolved_by),
            note=_note_of(left) if left.resolved_at else "",
        )
        for left in found
    ]


def _note_of(left: Difference) -> str:
    if left.note is None:
        return ""
    return "(erased)" if left.note.erased_at else left.note.text


def open_of(intent: Intent | None) -> list[Row]:
    """What is left to do about one intent."""
    return rows(list(differences.open_ones().filter(intent=intent))) if intent is not None else []


@page
def money_csv(request: DeskRequest) -> HttpResponse:
    """Everything open and what was resolved lately, for a spreadsheet."""
    done = _with_relations(Difference.objects.filter(resolved_at__isnull=False)).order_by("-resolved_at", "-pk")
    found = chain(*(rows(list(part[:MOST_EXPORTED])) for part in (differences.open_ones(), done)))
    return csv_out.whole("money", [*COLUMNS, *COLUMNS_WHEN_DONE], map(_cells, found), now=times.now())


def _cells(row: Row) -> Sequence[str]:
    left = row.left
    return (
        LeftToDo(left.what).label,
        csv_out.amount(left.amount_minor, left.currency),
        left.currency,
        left.intent.subject,
        left.intent.kind.title,
        str(left.intent_id),
        left.entry.entry_id if left.entry else "",
        csv_out.time(left.opened_at),
        row.decided_by,
        csv_out.time(left.resolved_at),
        row.resolved_by,
        row.note,
    )
