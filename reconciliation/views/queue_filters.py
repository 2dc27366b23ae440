"""What the queue's filters say, as a condition and as words that can be taken away one by one."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Exists, OuterRef, Q
from django.db.models.lookups import LessThanOrEqual

from reconciliation.list_forms import AGES, QueueFilter
from reconciliation.models import ReviewReason
from reconciliation.views import paging
from reconciliation.views.queue_order import SINCE
from reconciliation.views.unindexed import equals

_TITLES = {"reason": "Reason", "kind": "Kind", "downstream": "Downstream", "agent": "Agent", "older": "Age"}


@dataclass(frozen=True)
class Chip:
    """A filter that is on: `what` is said by `words`; `without`: the page without it."""

    what: str
    words: str
    without: str


def condition(form: QueueFilter, now: datetime) -> Q:
    """The open cases that all filters let through. No case comes twice, whatever is joined."""
    asked = form.cleaned_data
    wanted = _about(form) & _amounts(form)
    if asked.get("reason"):
        wanted &= Q(Exists(ReviewReason.objects.filter(review=OuterRef("pk"), code=asked["reason"])))
    if asked.get("incident"):
        wanted &= Q(incident=asked["incident"])
    if asked.get("older"):
        wanted &= Q(LessThanOrEqual(SINCE, now - AGES[asked["older"]][1]))
    return wanted


def _about(form: QueueFilter) -> Q:
    kind, agent, downstream = (form.id_of(field) for field in ("kind", "agent", "downstream"))
    wanted = Q()
    if kind is not None:
        wanted &= Q(equals("intent__kind", kind))
    if agent is not None:
        wanted &= Q(equals("intent__agent", agent))
    if downstream is not None:
        wanted &= Q(equals("intent__downstream", downstream)) | Q(equals("entry__downstream", downstream))
    return wanted


def _amounts(form: QueueFilter) -> Q:
    asked = form.cleaned_data
    wanted = Q(currency=asked["currency"]) if asked.get("currency") else Q()
    if (low := asked.get("amount_from_minor")) is not None:
        wanted &= Q(amount_minor__gte=low)
    if (high := asked.get("amount_to_minor")) is not None:
        wanted &= Q(amount_minor__lte=high)
    return wanted


def chips(form: QueueFilter, kept: Mapping[str, str]) -> list[Chip]:
    """One for each filter that is on. `kept`: everything that the page's links keep."""
    on = form.understood
    found = [
        Chip(title, _title_of(form, field, on[field]), paging.link(kept, **{field: ""}))
        for field, title in _TITLES.items()
        if field in on
    ]
    amount = {"amount_from": "", "amount_to": "", "currency": ""}
    if on.keys() & amount.keys():
        found.append(Chip("Amount", _amount_words(on), paging.link(kept, **amount)))
    if "incident" in on:
        found.append(Chip("Incident", f"no. {on['incident']}", paging.link(kept, incident="")))
    return found


def _title_of(form: QueueFilter, field: str, value: str) -> str:
    choices = dict(form.fields[field].choices)  # type: ignore[attr-defined]
    return str(choices.get(value, value))


def _amount_words(on: Mapping[str, str]) -> str:
    low, high = (on.get(name, "") for name in ("amount_from", "amount_to"))
    if low and high:
        return f"{low} to {high} {on.get('currency', '').upper()}"
    words = f"from {low}" if low else f"to {high}" if high else "in"
    return f"{words} {on.get('currency', '').upper()}"
