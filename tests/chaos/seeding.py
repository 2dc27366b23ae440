"""Run as a program, in the product's own settings: migrates an empty database and writes policy, agents and people.

python -m tests.chaos.seeding URL_WITH_DEDUPE URL_WITHOUT; prints one line of JSON: tokens by agent, logins.
"""

import json
import sys
from typing import Any

from tests.chaos import plan

AGENTS = ("left-bot", "right-bot")
PEOPLE = (("rita", "reviewer"), ("ravi", "reviewer"), ("sofia", "supervisor"), ("sven", "supervisor"))
PASSWORD = "made-up-for-chaos"

# The downstream that carries out one key once, and the one that carries out whatever it is sent.
PAYMENTS, BANK = "payments", "bank"
# Sent by Landed to either, and carried out by the agent itself.
REFUND, PAYOUT, TRANSFER = "refund", "payout", "transfer"


def main() -> None:
    import django

    django.setup()
    from config import migrating

    migrating.migrate()
    print(json.dumps(_seed(*sys.argv[1:])))


def _seed(with_dedupe: str, without: str) -> dict[str, Any]:
    from django.db import transaction

    from actions import tokens
    from tests import factories

    with transaction.atomic():
        kinds = _make_kinds(with_dedupe, without)
        found = {}
        for name in AGENTS:
            agent = factories.make_agent(*kinds, name=name, rate_per_minute=1_000_000)
            found[name] = tokens.create(agent, may_propose=True, may_report=True)[1]
        for name, role in PEOPLE:
            person = factories.make_person(role, username=name)
            person.set_password(PASSWORD)
            person.save()
    return {"tokens": found, "people": [name for name, _ in PEOPLE], "password": PASSWORD}


def _make_kinds(with_dedupe: str, without: str) -> list[Any]:
    from tests import factories

    payments = _make_downstream(PAYMENTS, with_dedupe, dedupes=True, dedupe_window_s=86_400)
    bank = _make_downstream(BANK, without, dedupes=False, dedupe_window_s=None)
    limits = {
        "review_above": plan.REVIEW_ABOVE,
        "two_people_above": plan.TWO_ABOVE,
        "approve_above": plan.APPROVE_ABOVE,
    }
    rules: dict[str, Any] = {
        "executors": "landed",
        "limits": dict.fromkeys(plan.CURRENCIES, limits),
        "look_alike_policy": "allow",
        "not_sent_retries": 50,
        "send_before_s": 3_600,
        "check_schedule": [1, 2, 3, 5],
        "absences_needed": 2,
        "absence_spacing_s": 1,
        "recheck_failed_s": [5, 15, 3_600],
        "review_after_s": plan.REVIEW_AFTER_S,
        "relook": "share",
        "relook_percent": 10,
    }
    return [
        factories.make_kind(payments, name=REFUND, **rules, replay="in_window", replay_schedule=[1, 3]),
        # A worker that was killed may be believed not to have sent what the book does not show.
        factories.make_kind(bank, name=PAYOUT, **rules, machine_concludes_unclosed=True),
        factories.make_kind(bank, name=TRANSFER, **(rules | {"executors": "caller"})),
    ]


def _make_downstream(name: str, url: str, **columns: Any) -> Any:
    from actions.connectors.http_json.example import EXAMPLE
    from tests import factories

    config = {**EXAMPLE.target.config, "headers": {}}
    slow_down = {"status": 429, "result": "not_processed", "reason": "rate_limited"}
    config["known_errors"] = [*config["known_errors"], slow_down]
    return factories.make_downstream(
        name=name,
        base_url=url,
        config=config,
        lag_s=plan.LAG_S,
        look_back_s=60,
        connect_timeout_ms=500,
        deadline_ms=int(plan.DEADLINE_S * 1_000),
        lease_margin_ms=int(plan.MARGIN_S * 1_000),
        max_concurrency=24,
        max_look_ups=12,
        breaker_after=40,
        **columns,
    )


if __name__ == "__main__":
    main()
