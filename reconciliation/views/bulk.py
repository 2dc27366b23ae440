"""One thing for many cases at once: first what would happen with each, then what did."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse

from actions import times
from actions.errors import Invalid, PersonNotAllowed
from reconciliation.bulk_forms import BulkForm
from reconciliation.reviews.bulk import running
from reconciliation.reviews.bulk.judging import Asked, Bulk, State
from reconciliation.reviews.bulk.rows import MOST, Row, Ticked, read
from reconciliation.reviews.bulk.running import Came, Outcome
from reconciliation.views import did
from reconciliation.views.frame import READ_ONLY, DeskRequest, action, show
from reconciliation.views.pauses import safe_back

NOT_OFFERED: Final = (
    "This can't be done with many at once: what says that something happened, or has it sent, is decided one by one. "
    "Nothing was done."
)
# What the button says, and what is said of those that it was done with.
VERBS: Final[Mapping[Bulk, tuple[str, str]]] = {
    Bulk.CHECK: ("Look again at", "to be looked at"),
    Bulk.ASSIGN: ("Assign", "assigned"),
    Bulk.WAIT: ("Put aside", "put aside"),
    Bulk.CANCEL: ("Cancel", "cancelled"),
    Bulk.REJECT: ("Reject", "rejected"),
}
BUSY: Final[Mapping[Bulk, str]] = {
    Bulk.CHECK: "Asking…",
    Bulk.ASSIGN: "Assigning…",
    Bulk.WAIT: "Putting aside…",
    Bulk.CANCEL: "Cancelling…",
    Bulk.REJECT: "Rejecting…",
}


@action
def bulk(request: DeskRequest) -> HttpResponse:
    """`action`, and `ids` (cases), `intents`, or `all` (a whole list of `did`): a preview. With `step` = confirm and
    the preview's own `row`s: done, with an answer per row."""
    asked_for = request.POST.get("action", "")
    if asked_for not in Bulk.values:
        return _refuse(request, NOT_OFFERED)
    what = Bulk(asked_for)
    try:
        ticked, left = _ticked(request)
        if request.POST.get("step") == "confirm":
            return _confirm(request, what, ticked)
        return _preview(request, what, ticked, BulkForm(what), left=left)
    except Invalid as wrong:
        return _refuse(request, " ".join(error["message"] for error in wrong.details["errors"]))
    except PersonNotAllowed:
        raise PermissionDenied(READ_ONLY) from None


def _ticked(request: DeskRequest) -> tuple[list[Ticked], int]:
    """What was ticked, and how many of a whole list are left over for the next time."""
    given = request.POST
    if "all" not in given:
        ticked = read(reviews=given.getlist("ids"), intents=given.getlist("intents"), rows=given.getlist("row"))
        return ticked, 0
    scope, which = given.get("scope", ""), given.get("all", "")
    if which not in did.SHOWS:
        raise Invalid.field("all", "There is no such list. Nothing was done.")
    row = did.find(scope, given.get("name", ""))
    found = did.listed(scope, row, which, did.range_of(given.get("since", ""), times.now()).since)
    ids = [str(pk) for pk in found.values_list("pk", flat=True)[:MOST]]
    left = found.count() - MOST if len(ids) == MOST else 0
    return read(intents=ids), max(left, 0)


def _preview(
    request: DeskRequest, what: Bulk, ticked: Sequence[Ticked], form: BulkForm, *, left: int = 0, status: int = 200
) -> HttpResponse:
    judged = running.preview(what, ticked, asked=Asked(), person=request.user)
    can = [one for one in judged if one.state is State.CAN]
    context: dict[str, Any] = _common(request, what) | {
        "form": form,
        "can": can,
        "sums": sums(one.row for one in can),
        "cant": [one for one in judged if one.state is not State.CAN],
        "count": len(judged),
        "left": left,
        "busy": BUSY[what],
    }
    return show(request, "bulk.html", context, status=status)


def _confirm(request: DeskRequest, what: Bulk, ticked: Sequence[Ticked]) -> HttpResponse:
    form = BulkForm(what, request.POST)
    if not form.is_valid():
        return _preview(request, what, ticked, form, status=422)
    outcomes = running.run(what, ticked, asked=form.asked(times.now()), person=request.user)
    done = [one for one in outcomes if one.came is Came.DONE]
    context: dict[str, Any] = _common(request, what) | {
        "done": done,
        "sums": sums(one.row for one in done),
        "already": _of(outcomes, Came.ALREADY),
        "not_done": _of(outcomes, Came.NOT_DONE, Came.NOT_TRIED),
        "unknown": _of(outcomes, Came.UNKNOWN),
        "count": len(outcomes),
    }
    return show(request, "bulk_done.html", context)


def _of(outcomes: Iterable[Outcome], *came: Came) -> list[Outcome]:
    return [one for one in outcomes if one.came in came]


def _common(request: DeskRequest, what: Bulk) -> dict[str, Any]:
    verb, done = VERBS[what]
    return {
        "here": "queue",
        "action": what,
        "verb": verb,
        "verb_done": done,
        "back": safe_back(request.POST.get("back", "")),
    }


def sums(rows: Iterable[Row]) -> list[tuple[str, int]]:
    """Currency and sum in minor units, of those that have an amount."""
    found: dict[str, int] = {}
    for row in rows:
        if row.intent is not None and row.intent.amount_minor is not None:
            found[row.intent.currency] = found.get(row.intent.currency, 0) + row.intent.amount_minor
    return sorted(found.items())


def _refuse(request: DeskRequest, why: str) -> HttpResponse:
    context = {"here": "queue", "refused": why, "back": safe_back(request.POST.get("back", ""))}
    return show(request, "bulk_refused.html", context, status=422)
