"""The routes about intents. Each reads the request, calls one function and shows what it returned."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from ninja import Router

from actions import jobs, recording, times, withdrawing
from actions.api import describing, histories, listing, preferring, showing
from actions.api.answers import json_response
from actions.api.auth import PROPOSE, READ, Bearer, agent_of
from actions.api.fields import read_proposal, refuse_unknown
from actions.api.intake import read_object, request_key
from actions.api.schemas import HistoryOut, IntentOut, PageOut
from actions.errors import Invalid, KeyReused, NotAllowed
from actions.models import Agent, Executor, Intent
from actions.proposals import Proposal
from actions.rates import Bucket
from actions.reasons import Reason
from actions.recording import Recorded
from actions.statuses import Actor, Status

router = Router(tags=["intents"])


@router.post(
    "/intents",
    auth=Bearer(*PROPOSE, bucket=Bucket.PROPOSE),
    response={201: IntentOut, 200: IntentOut},
    by_alias=True,
    url_name="intents",
    openapi_extra=describing.RECORD,
)
def record_intent(request: HttpRequest) -> HttpResponse:
    """Records an intent; with an Idempotency-Key that was used before, gives back what it stands for."""
    agent = agent_of(request)
    body = read_object(request)
    key = request_key(request)
    recorded = _record(_proposal(body, agent, key), agent, key)
    claim_token = body.get("claim_token")
    if "Prefer" in request.headers:
        return preferring.hold(
            request, agent, recorded.intent.pk, lambda: _as_it_is_now(recorded, agent, claim_token)
        )
    if recorded.replayed:
        return _replayed(recorded, agent, claim_token)
    return _recorded(recorded.intent, agent, claim_token)


def _as_it_is_now(recorded: Recorded, agent: Agent, claim_token: str | None) -> HttpResponse:
    intent = showing.visible(agent, recorded.intent.pk)
    if recorded.replayed:
        return _replayed(replace(recorded, intent=intent), agent, claim_token)
    body = showing.intent_json(intent, now=times.now(), viewer=agent, claim_token=claim_token)
    answer = json_response(body, status=201)
    answer["Location"] = showing.url_of(intent)
    return answer


def _proposal(body: Mapping[str, Any], agent: Agent, key: str) -> Proposal:
    try:
        return read_proposal(body)
    except Invalid as wrong:
        # The request key comes before validation: who sends garbage under a used key is told about the key.
        stored = Intent.objects.select_related("agent", "kind", "policy").filter(agent=agent, request_key=key).first()
        if stored is None:
            raise
        differs = list(dict.fromkeys(str(e["field"]).split(".")[0] for e in wrong.details["errors"]))
        raise KeyReused(differs=differs, intent=stored) from None


def _record(proposal: Proposal, agent: Agent, key: str) -> Recorded:
    recorded = recording.record(proposal, agent=agent, request_key=key)
    intent = recorded.intent
    if not recorded.replayed and intent.executor == Executor.LANDED and intent.status == Status.RECORDED:
        jobs.ring_after_commit(jobs.SEND)
    return recorded


def _recorded(intent: Intent, agent: Agent, claim_token: str | None) -> HttpResponse:
    # Its own time is now, and a plainly recorded one has neither attempts nor a review: this is the hot path.
    around = showing.NOTHING_YET if intent.status == Status.RECORDED else None
    body = showing.intent_json(intent, now=intent.created_at, viewer=agent, claim_token=claim_token, around=around)
    answer = json_response(body, status=201)
    answer["Location"] = showing.url_of(intent)
    return answer


def _replayed(recorded: Recorded, agent: Agent, claim_token: str | None) -> HttpResponse:
    intent = recorded.intent
    body = showing.intent_json(intent, now=times.now(), viewer=agent, claim_token=claim_token)
    answer = json_response(body | {"differs": list(recorded.differs)})
    answer["Location"] = showing.url_of(intent)
    answer["Idempotent-Replayed"] = "true"
    return answer


@router.get(
    "/intents",
    auth=Bearer(*READ),
    response=PageOut,
    by_alias=True,
    url_name="intents",
    openapi_extra=describing.LIST,
)
def list_intents(request: HttpRequest) -> HttpResponse:
    """Intents of this agent and its group, newest first."""
    agent = agent_of(request)
    found = listing.page(showing.visible_to(agent), request.GET)
    now, around = times.now(), showing.look_around(found.intents)
    data = [showing.intent_json(intent, now=now, viewer=agent, around=around[intent.pk]) for intent in found.intents]
    return json_response({"data": data, "next_cursor": found.next_cursor})


@router.get(
    "/intents/{uuid:intent_id}",
    auth=Bearer(*READ),
    response=IntentOut,
    by_alias=True,
    url_name="intent",
    openapi_extra=describing.READ,
)
def read_intent(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """One intent as it is now; with Prefer: wait=N, as it is once there is something to do or N seconds are over."""
    agent = agent_of(request)

    def answer() -> HttpResponse:
        intent = showing.visible(agent, intent_id)
        return json_response(showing.intent_json(intent, now=times.now(), viewer=agent))

    return preferring.hold(request, agent, intent_id, answer)


@router.get(
    "/intents/{uuid:intent_id}/history",
    auth=Bearer(*READ),
    response=HistoryOut,
    by_alias=True,
    openapi_extra=describing.HISTORY,
)
def read_history(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Everything that happened to it: changes of status, attempts, looks into the books."""
    return json_response(histories.history_json(showing.visible(agent_of(request), intent_id)))


@router.post(
    "/intents/{uuid:intent_id}/cancel",
    auth=Bearer(*PROPOSE),
    response=IntentOut,
    by_alias=True,
    openapi_extra=describing.CANCEL,
)
def cancel_intent(request: HttpRequest, intent_id: UUID) -> HttpResponse:
    """Withdraws an intent that was never sent; one that is cancelled already stays as it is."""
    agent = agent_of(request)
    _take_no_fields(request)
    if showing.visible(agent, intent_id).agent_id != agent.pk:
        raise NotAllowed("Agents of a group read each other's intents; only its own agent withdraws one.")
    withdrawing.cancel(intent_id, actor=Actor.AGENT, actor_id=f"agent:{agent.pk}", reason=Reason.CANCELLED_BY_AGENT)
    intent = showing.visible(agent, intent_id)
    return json_response(showing.intent_json(intent, now=times.now(), viewer=agent))


def _take_no_fields(request: HttpRequest) -> None:
    if request.META.get("CONTENT_LENGTH") in (None, "", "0"):
        return
    errors: list[dict[str, str]] = []
    refuse_unknown(read_object(request), (), errors)
    if errors:
        raise Invalid(errors)
