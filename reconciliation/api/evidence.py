"""The routes of services that look into books with code of their own: what is due, and what they saw.

Both take the scope `evidence`, which no token has together with `propose` or `report`. An agent serves the intents of
its kinds, whoever proposed them.
"""

from typing import Any, Final
from uuid import UUID

from django.http import HttpRequest, HttpResponse, QueryDict
from ninja import Router

from actions import times
from actions.api import showing
from actions.api.answers import json_response, time_text
from actions.api.auth import Bearer, agent_of
from actions.api.intake import read_object
from actions.canonical import BadJson, check_text
from actions.errors import BadQuery
from actions.models import Agent, Intent, Scope
from reconciliation import by_service
from reconciliation.api import describing
from reconciliation.api.evidence_fields import read_evidence
from reconciliation.api.schemas import DEFAULT_LIMIT, MAX_LIMIT, DueOut, VerdictOut
from reconciliation.by_service import Offer
from reconciliation.models import Check

router = Router(tags=["evidence"])

_QUERY: Final = ("limit", "kind")


@router.get(
    "/checks/due",
    auth=Bearer(Scope.EVIDENCE),
    response=DueOut,
    url_name="checks_due",
    openapi_extra=describing.DUE,
)
def claim_checks(request: HttpRequest) -> HttpResponse:
    """Hands out looks that are due, each to one service only until its time is over."""
    query = _read_query(request.GET)
    offers = by_service.claim(agent_of(request), limit=_limit(query.get("limit")), kind=query.get("kind"))
    return json_response({"data": [_offer_json(offer) for offer in offers]})


def _read_query(query: QueryDict) -> dict[str, str]:
    """Raises BadQuery, also for an unknown parameter: a mistyped filter must not hand out everything."""
    found = {}
    for name, values in query.lists():
        if name not in _QUERY:
            raise BadQuery(f"{name!r} is unknown; there are {', '.join(_QUERY)}.", known=list(_QUERY))
        if len(values) > 1:
            raise BadQuery(f"{name} is given twice.")
        try:
            check_text(values[0])
        except BadJson as bad:
            raise BadQuery(f"{name}: {bad}") from None
        found[name] = values[0]
    return found


def _limit(text: str | None) -> int:
    if text is None:
        return DEFAULT_LIMIT
    if not (text.isascii() and text.isdecimal() and len(text) <= 3 and 1 <= int(text) <= MAX_LIMIT):
        raise BadQuery(f"limit: a whole number from 1 to {MAX_LIMIT}.")
    return int(text)


def _offer_json(offer: Offer) -> dict[str, Any]:
    intent = offer.intent
    return {
        "check": offer.check,
        "answer_before": time_text(offer.answer_before),
        "intent_id": str(intent.pk),
        "kind": intent.kind.name,
        "subject": intent.subject,
        "amount": intent.amount,
        "currency": intent.currency or None,
        "params": intent.params_data,
        "idempotency_key": intent.idempotency_key,
        "external_id": intent.external_id or None,
        "first_maybe_sent_at": time_text(intent.first_maybe_sent_at),
        "fence": intent.fence,
    }


@router.post(
    "/intents/{uuid:intent_id}/evidence",
    auth=Bearer(Scope.EVIDENCE),
    response=VerdictOut,
    by_alias=True,
    url_name="evidence",
    openapi_extra=describing.EVIDENCE,
)
def give_evidence(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """What a service saw in the books about one intent. What follows is decided here, by the kind's rules."""
    agent = agent_of(request)
    said = read_evidence(read_object(request))
    check = by_service.answer(intent_id, said, agent=agent)
    return json_response(_verdict_json(check, agent))


def _verdict_json(check: Check, agent: Agent) -> dict[str, Any]:
    intent = Intent.objects.select_related("agent", "kind", "policy", "downstream", "look_alike_of__agent").get(
        pk=check.intent_id
    )
    # The context is between the proposer and us: a customer, a ticket. It is in no book.
    shown = showing.intent_json(intent, now=times.now(), viewer=agent) | {"context": {}}
    return {"verdict": check.verdict, "counts_as_absence": check.counts_as_absence, "intent": shown}
