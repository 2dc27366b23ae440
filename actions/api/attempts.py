"""The routes of whoever carries out its intents itself: claim, renew, report.

All three take the scope `report`; recording with a claim token takes `propose`. Only the intent's own agent may;
agents of its group read it.
"""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from actions import callers, jobs, policy, times
from actions.api import describing, showing
from actions.api.answers import json_response, time_text
from actions.api.auth import REPORT, Bearer, agent_of
from actions.api.claim_fields import read_claim, read_report
from actions.api.intake import read_object
from actions.api.schemas import ClaimOut, IntentOut
from actions.errors import NotAllowed
from actions.models import Agent, Attempt, Intent

router = Router(tags=["attempts"])


@router.post(
    "/intents/{uuid:intent_id}/attempts",
    auth=Bearer(*REPORT),
    response={201: ClaimOut, 200: ClaimOut},
    url_name="attempts",
    openapi_extra=describing.CLAIM,
)
def claim_intent(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Claims it: whoever's token this is may send it while the lease lasts. The same token again: the same answer."""
    intent = _own(request, intent_id)
    body = read_claim(read_object(request))
    found = callers.take(
        intent.pk, claim_token=body.claim_token, actor_id=actor_id(agent_of(request)), lease_s=body.lease_s
    )
    answer = json_response(
        _claim_json(intent, found.attempt, may_send=found.may_send), status=201 if found.is_new else 200
    )
    answer["Location"] = showing.url_of(intent)
    return answer


@router.post(
    "/intents/{uuid:intent_id}/attempts/{int:number}/renew",
    auth=Bearer(*REPORT),
    response=ClaimOut,
    url_name="renew",
    openapi_extra=describing.RENEW,
)
def renew_attempt(request: HttpRequest, intent_id: UUID, number: int) -> HttpResponse:
    """More time for the open attempt, before its lease is over; never past what the sending rests on."""
    intent = _own(request, intent_id)
    body = read_claim(read_object(request))
    attempt = callers.renew(intent.pk, number=number, claim_token=body.claim_token, lease_s=body.lease_s)
    return json_response(_claim_json(intent, attempt, may_send=True))


@router.post(
    "/intents/{uuid:intent_id}/report",
    auth=Bearer(*REPORT),
    response=IntentOut,
    by_alias=True,
    url_name="report",
    openapi_extra=describing.REPORT,
)
def report_outcome(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """What came of an attempt. The same report again changes nothing; one that contradicts is kept and reviewed."""
    intent, agent = _own(request, intent_id), agent_of(request)
    body = read_report(read_object(request))
    found = callers.report(
        intent.pk,
        outcome=body.outcome,
        content=body.content,
        actor_id=actor_id(agent),
        number=body.attempt,
        claim_token=body.claim_token,
        trusted=policy.read(intent.policy.text).reports_trusted,
    )
    if found.next_check_at is not None:
        jobs.ring_after_commit(jobs.CHECK)
    intent = showing.visible_to(agent).get(pk=intent_id)
    return json_response(showing.intent_json(intent, now=times.now(), viewer=agent, claim_token=body.claim_token))


def actor_id(agent: Agent) -> str:
    return f"agent:{agent.pk}"


def _own(request: HttpRequest, intent_id: UUID) -> Intent:
    """The intent, if it is this agent's own. Raises NotFound, and NotAllowed for one of its group."""
    agent = agent_of(request)
    intent = showing.visible(agent, intent_id)
    if intent.agent_id != agent.pk:
        raise NotAllowed("Agents of a group read each other's intents; only its own agent carries one out.")
    return intent


def _claim_json(intent: Intent, attempt: Attempt, *, may_send: bool) -> dict[str, Any]:
    return {
        "attempt": {
            "number": attempt.number,
            "may_send": may_send,
            "lease_until": time_text(attempt.lease_until),
        },
        "idempotency_key": intent.idempotency_key,
    }
