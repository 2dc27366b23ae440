"""The queue: what waits for a person."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import HttpResponse

from actions import times
from reconciliation.list_forms import QueueFilter
from reconciliation.models import Review
from reconciliation.views import paging, queue_filters, queue_order, queue_rows
from reconciliation.views.frame import DeskRequest, page, show
from reconciliation.views.outages import outages
from reconciliation.views.paging import Page
from reconciliation.views.queue_filters import Chip
from reconciliation.views.queue_rows import Row
from reconciliation.views.queue_tabs import DEFAULT, EMPTY, TABS, counts, in_tab


@dataclass(frozen=True)
class View:
    """What somebody asks the queue for. `told`: what of it there is not, in words."""

    person: User
    tab: str
    order: str
    after: str
    form: QueueFilter
    told: list[str]

    def wanted(self, now: datetime) -> Q:
        return queue_filters.condition(self.form, now)

    def kept(self) -> dict[str, str]:
        """What every link of the page keeps."""
        order = "" if self.order == queue_order.DEFAULT else self.order
        return {"tab": self.tab, "order": order, **self.form.understood}

    def chips(self) -> list[Chip]:
        return queue_filters.chips(self.form, self.kept())


def view_of(request: DeskRequest) -> View:
    tab, order = request.GET.get("tab", ""), request.GET.get("order", "")
    told = [f"There is no tab “{tab}”: this is {TABS[DEFAULT]}."] if tab and tab not in TABS else []
    if order and order not in queue_order.ORDERS:
        told.append(f"There is no order “{order}”: this is {queue_order.ORDERS[queue_order.DEFAULT].title}.")
    return View(
        person=request.user,
        tab=tab if tab in TABS else DEFAULT,
        order=order if order in queue_order.ORDERS else queue_order.DEFAULT,
        after=request.GET.get("after", ""),
        form=QueueFilter(request.GET),
        told=told,
    )


@page
def queue(request: DeskRequest) -> HttpResponse:
    now, view = times.now(), view_of(request)
    shown, chips = page_of(view, now), view.chips()
    counted = counts(request.user, now, view.wanted(now))
    context: dict[str, Any] = {
        "here": "queue",
        "here_path": request.get_full_path(),
        "now": now,
        "view": view,
        "form": view.form,
        "chips": chips,
        "tabs": [(name, title, counted[name], _link(view, tab=name)) for name, title in TABS.items()],
        "orders": [(name, _link(view, order=name), view.order == name) for name in queue_order.ORDERS],
        "page": shown,
        "first": _link(view),
        "following": _link(view, after=shown.following),
        "export": _link(view),
        "empty": _empty(view, filtered=bool(chips)),
        "cleared": paging.link({"tab": view.tab}),
        "outages": outages(now),
        "newest": counted["newest"],
        "pulse": _link(view, seen=str(counted["newest"]), states=_states(shown.rows)),
    }
    return show(request, "queue.html", context)


def _link(view: View, **changes: str) -> str:
    return paging.link(view.kept(), **changes)


def _states(rows: list[Row]) -> str:
    return "-".join(f"{row.review.pk}.{row.state}" for row in rows)


def _empty(view: View, *, filtered: bool) -> str:
    if view.after:
        return "No case comes after these any more."
    return "No case fits the filters in this tab." if filtered else EMPTY[view.tab]


def page_of(view: View, now: datetime) -> Page[Row]:
    """The open cases of one tab that the filters let through, in the order that was asked for."""
    reviews, more = paging.cut(queue_rows.with_all(matching(view, now))[: paging.PER_PAGE + 1])
    found = queue_rows.rows(reviews, person=view.person, now=now)
    return Page(found, queue_order.cursor(view.order, reviews[-1], found[-1].since) if more else "")


def matching(view: View, now: datetime) -> Any:
    wanted = in_tab(view.tab, view.person, now) & view.wanted(now)
    return queue_order.ordered(Review.objects.filter(wanted, closed_at__isnull=True), view.order, view.after)
