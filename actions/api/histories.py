"""An intent's history as agents read it: no names, no hidden reasons."""

from typing import Any, Final

from actions import reasons
from actions.api.answers import time_text
from actions.models import Attempt, Intent, Transition
from actions.statuses import Actor

_AGENT, _MACHINE, _PERSON = "agent", "machine", "person"
SHOWN_AS: Final = {
    Actor.AGENT: _AGENT,
    Actor.APPLICATION: _AGENT,
    Actor.CALLER: _AGENT,
    Actor.WORKER: _MACHINE,
    Actor.CHECKER: _MACHINE,
    Actor.CLOCK: _MACHINE,
    Actor.REVIEWER: _PERSON,
    Actor.ADMINISTRATOR: _PERSON,
}


def history_json(intent: Intent) -> dict[str, Any]:
    """Costs three queries."""
    # By the reverse relation: the table of checks belongs to `reconciliation`.
    checks = intent.checks.order_by("position").values_list("at", "verdict")
    return {
        "transitions": [_transition(row) for row in intent.transitions.order_by("sequence")],
        "attempts": [_attempt(row) for row in intent.attempts.order_by("number")],
        "checks": [{"at": time_text(at), "verdict": verdict} for at, verdict in checks],
    }


def _transition(row: Transition) -> dict[str, Any]:
    return {
        "sequence": row.sequence,
        "from": row.from_status or None,
        "to": row.to_status,
        "actor": SHOWN_AS[Actor(row.actor)],
        "reason": reasons.public(row.reason),
        "at": time_text(row.at),
    }


def _attempt(row: Attempt) -> dict[str, Any]:
    return {
        "number": row.number,
        "claimed_at": time_text(row.claimed_at),
        "closed_at": time_text(row.closed_at),
        "result": row.known_result or None,
        "reason": reasons.public(row.late_reason or row.reason) or None,
        "phase": row.phase or None,
        "http_status": row.http_status,
    }
