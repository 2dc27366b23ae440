"""The queue as a file for a spreadsheet: one tab, as filtered and in the same order, all of its pages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime

from django.http import HttpResponse

from actions import times
from reconciliation.templatetags.desk import person as name_of
from reconciliation.views import csv_out, queue
from reconciliation.views.frame import DeskRequest, page
from reconciliation.views.queue import View
from reconciliation.views.queue_rows import Row

COLUMNS = (
    "case", "what", "order", "amount", "currency", "why it is here", "second person", "customer waits", "recommended",
    "status", "since", "due", "overdue", "who", "waits for", "waits until", "agent", "intent", "opened",
)  # fmt: skip


@page
def queue_csv(request: DeskRequest) -> HttpResponse:
    now, view = times.now(), queue.view_of(request)
    found = (cells(row) for row in all_of(replace(view, after=""), now))
    return csv_out.streamed(f"cases-{view.tab}", COLUMNS, found, now=now)


def all_of(view: View, now: datetime) -> Iterator[Row]:
    """Page after page, so that no query is long and no list is large."""
    while True:
        found = queue.page_of(view, now)
        yield from found.rows
        if not found.following:
            return
        view = replace(view, after=found.following)


def cells(row: Row) -> Sequence[str]:
    review, intent = row.review, row.review.intent
    return (
        str(review.pk),
        row.what,
        row.order,
        csv_out.amount(review.amount_minor, review.currency),
        review.currency,
        row.why,
        row.second,
        "yes" if review.customer_waiting else "no",
        review.get_recommendation_display() if review.recommendation else "",
        f"{row.status}, disputed" if row.disputed else row.status,
        csv_out.time(row.since),
        csv_out.time(review.due_at),
        "yes" if row.overdue else "no",
        name_of(row.owner) if row.owner else "",
        review.get_waits_for_display() if row.waits else "",
        csv_out.time(review.waits_until) if row.waits else "",
        intent.agent.name if intent else "",
        str(intent.pk) if intent else "",
        csv_out.time(review.opened_at),
    )
