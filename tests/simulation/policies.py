"""What every run finds in its database: downstreams of four sorts, kinds with their rules, agents and people."""

import base64
from dataclasses import dataclass, replace
from typing import Any

from django.contrib.auth.models import User

from actions.connectors.http_json.example import EXAMPLE
from actions.models import Agent, Kind
from tests import factories
from tests.simulation.downstream import Payments

SECRET, HOOK_SECRET = "SIMULATION_SECRET", "SIMULATION_HOOK_SECRET"
ENVIRONMENT = {SECRET: "sk_simulated", HOOK_SECRET: "whsec_" + base64.b64encode(b"simulated").decode()}

DEADLINE_S, MARGIN_S, LAG_S, WINDOW_S = 2, 1, 5, 300
REVIEW_AFTER_S = 120
LIMITED, MOST_OPEN = "agent-b", 3

# The host name of each, which is also its name: its ledger shows keys or not, can be asked or not.
SERVICES = (
    Payments("alpha", dedupes=True, window_s=WINDOW_S, lag_s=LAG_S),
    Payments("beta", dedupes=False, window_s=0, lag_s=LAG_S),
    Payments("gamma", dedupes=False, window_s=0, lag_s=LAG_S, shows_keys=False),
    Payments("delta", dedupes=True, window_s=WINDOW_S, lag_s=LAG_S),
)
_LOOK_UP = {"alpha": "both", "beta": "both", "gamma": "subject", "delta": "none"}

LIMITS = {"EUR": {"review_above": 10_000, "two_people_above": 20_000, "approve_above": 30_000}}
AMOUNTS = ("50.00", "50.00", "50.00", "50.00", "50.00", "50.00", "50.00", "150.00", "250.00", "350.00")

_KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "alpha-replays": (
        "alpha",
        {"replay": "in_window", "replay_schedule": [5, 60], "relook": "all", "look_alike_policy": "allow"},
    ),
    "alpha-waits": ("alpha", {"machine_concludes_unclosed": True, "duplicate_policy": "hold"}),
    "beta-plain": ("beta", {"machine_concludes_unclosed": True, "look_alike_policy": "allow"}),
    "beta-holds": ("beta", {"duplicate_policy": "hold", "relook": "all", "not_sent_retries": 1}),
    "gamma": ("gamma", {"machine_concludes_unclosed": True, "look_alike_policy": "allow"}),
    "delta-replays": ("delta", {"replay": "in_window", "replay_schedule": [5, 60]}),
    "delta-waits": ("delta", {}),
}


@dataclass(frozen=True)
class Cast:
    """Rows of the template; the same for every run, so that they are read once."""

    kinds: tuple[Kind, ...]
    agents: tuple[Agent, ...]
    people: tuple[User, ...]


def make() -> Cast:
    """Writes them into an empty, migrated database."""
    config = EXAMPLE.target.config
    slow_down = {"status": 429, "result": "not_processed", "reason": "rate_limited"}
    config = {**config, "known_errors": [*config["known_errors"], slow_down]}
    downstreams = {
        service.name: factories.make_downstream(
            name=service.name,
            base_url=f"http://{service.name}",
            config=config,
            secret_env=SECRET,
            webhook_secret_env=HOOK_SECRET,
            dedupes=service.dedupes,
            dedupe_window_s=WINDOW_S if service.dedupes else None,
            look_up=_LOOK_UP[service.name],
            absence_conclusive=_LOOK_UP[service.name] != "none",
            lag_s=LAG_S,
            look_back_s=300 if service.name in ("alpha", "beta") else None,
            deadline_ms=DEADLINE_S * 1_000,
            connect_timeout_ms=500,
            lease_margin_ms=MARGIN_S * 1_000,
            breaker_after=4,
        )
        for service in SERVICES
    }
    rules: dict[str, Any] = {
        "check_schedule": [3, 10, 30],
        "absences_needed": 2,
        "absence_spacing_s": 3,
        "review_after_s": REVIEW_AFTER_S,
        "send_before_s": 900,
        "approval_expires_s": 900,
        "recheck_failed_s": [200, 600],
        "limits": LIMITS,
    }
    kinds = tuple(
        factories.make_kind(downstreams[down], name=name, **(rules | more)) for name, (down, more) in _KINDS.items()
    )
    # One of the two has limits; what is not limited, a limited agent may do only with approval.
    limits = {"open": MOST_OPEN, "amounts": {"EUR": {"per_day": 10_000_000}}}
    agents = (
        factories.make_agent(*kinds, name="agent-a"),
        factories.make_agent(*kinds, name=LIMITED, limits=limits),
    )
    people = tuple(
        factories.make_person(role, username=name)
        for name, role in (("mara", "supervisor"), ("jon", "reviewer"), ("ida", "supervisor"))
    )
    return Cast(kinds, agents, people)


def services() -> dict[str, Payments]:
    """Fresh ones, without books, by host name."""
    return {one.name: replace(one, effects=[], first={}, errors={}, away_until=None, seen=set()) for one in SERVICES}
