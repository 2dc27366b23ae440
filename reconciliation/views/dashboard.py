"""A few figures about the desk, each defined in a sentence; three of them with a picture and its table."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from django.http import HttpResponse
from django.utils.safestring import SafeString

from actions import times
from reconciliation.figures import open_cases, sendings, settling
from reconciliation.figures.sendings import UnknownRate
from reconciliation.figures.settling import Settling
from reconciliation.views import charts, comfort, words
from reconciliation.views.frame import DeskRequest, page, show


@page
def dashboard(request: DeskRequest) -> HttpResponse:
    now, at = times.now(), comfort.zone() or UTC
    by_age, rates, settled = open_cases.by_age(now), sendings.unknown_rates(now, at), settling.settling(now)
    context: dict[str, Any] = {
        "here": "team",
        "now": now,
        "by_age": by_age,
        "open": sum(band.count for band in by_age),
        "by_reason": open_cases.by_reason(),
        "at_stake": open_cases.at_stake(),
        "rates": rates,
        "days": _days(rates),
        "zone": comfort.zone_name(at),
        "settled": settled,
        "median": said(settled.median),
        "p90": said(settled.p90),
        "machine": settled.by_machine.percent,
        "reversals": settling.reversals(now),
        "charts": _charts([(band.what, band.count) for band in by_age], rates, settled),
    }
    return show(request, "dashboard.html", context)


def said(span: timedelta | None) -> str:
    """`12 min`; a dash while there is none."""
    return "–" if span is None else words.span(span)


def _days(rates: Sequence[UnknownRate]) -> list[str]:
    return [f"{day:%d %b}" for day, _ in rates[0].per_day] if rates else []


def _charts(by_age: list[tuple[str, int]], rates: Sequence[UnknownRate], settled: Settling) -> dict[str, SafeString]:
    per_day = [(rate.name, [share.percent for _, share in rate.per_day]) for rate in rates]
    return {
        "age": charts.bars(by_age, title="Open cases by age, as in the table beside it"),
        "rate": charts.lines(
            [day.split()[0] for day in _days(rates)], per_day, title="Unknown rate per day, as in the table beside it"
        )
        if rates
        else SafeString(""),
        "settling": charts.columns(settled.bands, title="Time to settle, as in the table beside it"),
    }


def day_began(now: datetime, at: tzinfo) -> datetime:
    """When the reader's day began."""
    return datetime.combine(now.astimezone(at).date(), datetime.min.time(), at)
