"""What became of the queue since a page of it was shown: asked for by the page itself, every ten seconds.

Nothing moves: the counts in the tabs renew, a case that was decided or taken is marked where it stands, and new ones
are only told of until somebody asks to see them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Exists, OuterRef
from django.http import HttpResponse

from actions import times
from reconciliation.models import Decision, Review
from reconciliation.views import paging, queue_rows
from reconciliation.views.frame import DeskRequest, page, show
from reconciliation.views.queue import View, view_of
from reconciliation.views.queue_tabs import TABS, counts, in_tab

_DIGITS = 18


@dataclass(frozen=True)
class Mark:
    """What became of a case that is on the page: in words, and whether it is gone for the reader."""

    review_id: int
    words: str
    gone: bool


@page
def news(request: DeskRequest) -> HttpResponse:
    """Four queries, however long the queue is."""
    now, view = times.now(), view_of(request)
    seen, before = _number(request.GET.get("seen", "")), _states(request.GET.get("states", ""))
    told = _number(request.GET.get("told", ""))
    states, marks = _became(view, before, now)
    counted = counts(request.user, now, view.wanted(now))
    fresh = _fresh(view, seen, now)
    context: dict[str, Any] = {
        "now": now,
        "view": view,
        "counts": [(name, counted[name]) for name in TABS],
        "fresh": fresh,
        "changed": fresh != told,
        "marks": marks,
        "first": paging.link(view.kept()),
        "pulse": paging.link(view.kept(), seen=str(seen), told=str(fresh), states=states),
    }
    return show(request, "_news.html", context)


def _fresh(view: View, seen: int, now: datetime) -> int:
    """How many cases of this tab, as filtered, are newer than the newest one that the page knows of."""
    wanted = in_tab(view.tab, view.person, now) & view.wanted(now)
    return Review.objects.filter(wanted, closed_at__isnull=True, pk__gt=seen).count()


def _became(view: View, before: Mapping[int, str], now: datetime) -> tuple[str, list[Mark]]:
    """The states of the page's cases now, to be sent along the next time, and marks for those that changed."""
    decided = Exists(
        Decision.objects.filter(queue_rows.undecided(), review=OuterRef("pk"), takes_effect_at__isnull=False)
    )
    found = Review.objects.filter(pk__in=before).select_related("holder", "owner").annotate(decided=decided)
    states, marks = dict(before), []
    for review in found:
        state = queue_rows.state_of(review, now, decided=review.decided)
        states[review.pk] = state
        if state != before[review.pk]:
            marks.append(Mark(review.pk, *queue_rows.became(review, state, person=view.person, now=now)))
    return "-".join(f"{pk}.{state}" for pk, state in states.items()), marks


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else 0


def _states(text: str) -> dict[int, str]:
    """`17.0-18.5-19.c` → what was shown of each case; at most one page of them."""
    pairs = (part.partition(".") for part in text.split("-")[: paging.PER_PAGE])
    return {number: state[: _DIGITS + 1] for name, _, state in pairs if (number := _number(name))}
