"""All intents, newest first."""

import unicodedata
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Q, QuerySet
from django.http import HttpResponse

from actions import subjects
from actions.models import Agent, Intent
from reconciliation.entries import HAS_EXTERNAL_ID
from reconciliation.forms import IntentFilter
from reconciliation.views import paging
from reconciliation.views.frame import DeskRequest, page, show
from reconciliation.views.paging import Page


@page
def intents(request: DeskRequest) -> HttpResponse:
    form = IntentFilter(request.GET)
    form.is_valid()  # what is not understood filters nothing
    asked = form.cleaned_data
    found = matching(
        asked.get("q", ""),
        status=asked.get("status", ""),
        kind=asked.get("kind"),
        agent=asked.get("agent"),
        disputed=asked.get("disputed", False),
    )
    kept = urlencode([(key, value) for key, value in request.GET.items() if value and key != "after"])
    context = {
        "here": "intents",
        "form": form,
        "page": page_of(found, request.GET.get("after", "")),
        "kept": kept,
        "query": asked.get("q", ""),
        "filtered": bool(kept),
    }
    return show(request, "intents.html", context)


def matching(q: str, *, status: str, kind: object, agent: object, disputed: bool) -> QuerySet[Intent]:
    wanted = {"status": status or None, "kind": kind, "agent": agent, "disputed": disputed or None}
    found = Intent.objects.filter(**{name: value for name, value in wanted.items() if value is not None})
    return found.filter(_named(q.strip())) if q.strip() else found


def page_of(found: QuerySet[Intent], after: str) -> Page[Intent]:
    """Ids are in order of time, so that the primary key alone carries the list."""
    cursor = paging.decode(after, parts=1)
    last = _uuid(str(cursor[0])) if cursor else None
    if last is not None:
        found = found.filter(pk__lt=last)
    rows, more = paging.cut(found.select_related("kind", "agent").order_by("-pk")[: paging.PER_PAGE + 1])
    return Page(rows, paging.encode(str(rows[-1].pk)) if more else "")


def _named(q: str) -> Q:
    """An order (with its parts), an idempotency or request key, an external id, or an intent's id: exactly.

    Each is asked for by itself, because one OR over several columns would use no index.
    """
    subject = unicodedata.normalize("NFC", q)
    ids = {found for found in (_uuid(q),) if found is not None}
    agents = list(Agent.objects.values_list("pk", flat=True))
    for by in (Q(idempotency_key=q), Q(HAS_EXTERNAL_ID, external_id=q), Q(agent__in=agents, request_key=q)):
        ids |= set(Intent.objects.filter(by).order_by("-pk").values_list("pk", flat=True)[: paging.PER_PAGE])
    in_family = Q(family=subjects.family_of(subject)) & (Q(subject=subject) | Q(family=subject))
    return in_family | Q(pk__in=ids)


def _uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
