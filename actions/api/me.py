"""The routes with which an agent learns what it is and what it may propose."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from ninja import Router

from actions import limit_rules, limits, rates, times
from actions.api import describing
from actions.api.answers import json_response, time_text
from actions.api.auth import Bearer, agent_of, token_of
from actions.api.schemas import AgentOut, KindsOut
from actions.limits import Standing
from actions.models import Agent, Executor, Executors, Kind, Scope
from actions.rates import Bucket

router = Router(tags=["agent"])


@router.get("/me", auth=Bearer(), response=AgentOut, openapi_extra=describing.OWN)
def read_me(request: HttpRequest) -> HttpResponse:
    """The agent and the scopes that this token stands for."""
    token, agent = token_of(request), agent_of(request)
    return json_response(
        {
            "agent": agent.name,
            "title": agent.title,
            "group": agent.group or None,
            "paused": agent.paused,
            "scopes": sorted(token.scopes),
            "limits": {"rate_per_minute": agent.rate_per_minute, "left": _left(agent), "set": _limits(agent)},
        }
    )


def _limits(agent: Agent) -> list[dict[str, Any]]:
    return [_standing(one) for one in limits.left(agent, now=times.now())] if agent.limits else []


def _standing(one: Standing) -> dict[str, Any]:
    counted = one.used is not None
    return limit_rules.as_json(one.limit) | {
        "used": limit_rules.value_of(one.limit, one.used) if one.used is not None else None,
        "remaining": limit_rules.value_of(one.limit, one.remaining) if counted else None,
        "resets_at": time_text(one.resets_at),
    }


def _left(agent: Agent) -> dict[str, int]:
    return {bucket.value: rates.left(agent, bucket) for bucket in Bucket}


@router.get("/kinds", auth=Bearer(Scope.PROPOSE, Scope.READ), response=KindsOut, openapi_extra=describing.OWN)
def list_kinds(request: HttpRequest) -> HttpResponse:
    """The kinds that this agent may propose, with the schemas of their params."""
    agent = agent_of(request)
    kinds = Kind.objects.all() if agent.built_in else agent.kinds.all()
    return json_response({"data": [_kind_json(kind) for kind in kinds.order_by("name")]})


def _kind_json(kind: Kind) -> dict[str, Any]:
    # No limits and no pause reason: those would tell how to stay below what people look at.
    return {
        "name": kind.name,
        "title": kind.title,
        "executors": sorted(Executor.values) if kind.executors == Executors.BOTH else [kind.executors],
        "params_schema": kind.params_schema,
        "amount": kind.amount_rule,
        "subject": "derived" if kind.subject_from else "required",
        "paused": kind.paused,
    }
