"""What comes after: workers, clocks and web processes that were started anew, until nothing is left to do."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import connection

from actions import jobs, times
from actions.notifying import running
from config import clockwork
from reconciliation import jobs as check_jobs
from tests.kill_points.acts import Act, Facts, clock, later
from tests.simulation import questions

_MOST_ROUNDS = 25

# When something is due for what hangs: leases, sendings, looks; and decisions, and deliveries both ways.
_DUE = """
SELECT MIN(at) FROM (
    SELECT MIN(lease_until) AS at FROM actions_intent WHERE lease_until > %(now)s
    UNION SELECT MIN(next_attempt_at) FROM actions_intent WHERE next_attempt_at > %(now)s
    UNION SELECT MIN(next_check_at) FROM actions_intent WHERE next_check_at > %(now)s
    UNION SELECT MIN(send_before) FROM actions_intent WHERE send_before > %(now)s AND status IN ('held', 'recorded')
    UNION SELECT MIN(takes_effect_at) FROM reconciliation_decision WHERE takes_effect_at > %(now)s
    UNION SELECT MIN(next_at) FROM actions_eventdelivery WHERE next_at > %(now)s
    UNION SELECT MIN(next_try_at) FROM reconciliation_delivery WHERE next_try_at > %(now)s
) AS times
"""
_LEFT = """
SELECT 'delivery to us', COUNT(*) FROM reconciliation_delivery WHERE next_try_at IS NOT NULL
UNION ALL SELECT 'delivery from us', COUNT(*) FROM actions_eventdelivery WHERE next_at IS NOT NULL
"""


def ask(sql: str, params: Any = None) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(sql, params)
        names = [column[0] for column in cursor.description]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def go_on(act: Act, facts: Facts) -> int:
    """The client asks again, machines do what is due, time passes. Returns how many rounds it took; what never ends
    is a fault."""
    act.again(facts)
    for rounds in range(1, _MOST_ROUNDS + 1):
        clockwork.tick()
        jobs.send_due()
        check_jobs.check_due()
        if facts.get("events"):
            running.deliver_due(budget_s=5)
        left = _left()
        if not left:
            _once_more(facts)
            return rounds
        later(_wait())
    facts["faults"].append(f"11: after {_MOST_ROUNDS} rounds: {'; '.join(left)}")
    return _MOST_ROUNDS


def _once_more(facts: Facts) -> None:
    """15: a sweep more changes nothing."""
    ticked = clockwork.tick()
    if ticked.actions or ticked.reconciliation or ticked.rung:
        facts["faults"].append(f"15: quiet, and the next sweep did something: {ticked}")


def _left() -> list[str]:
    found = [f"{row['id']} is {row['status']}" for row in ask(questions.HANGING)]
    found += [f"decision {row['id']} waits" for row in ask(questions.WAITING)]
    with connection.cursor() as cursor:
        cursor.execute(_LEFT)
        return found + [f"{count} × {what}" for what, count in cursor.fetchall() if count]


def _wait() -> float:
    """Seconds until something is due: a little more than that."""
    now = times.now()
    with connection.cursor() as cursor:
        cursor.execute(_DUE, {"now": now if connection.vendor == "postgresql" else str(now.replace(tzinfo=None))})
        (at,) = cursor.fetchone()
    if at is None:
        return 400.0
    found = datetime.fromisoformat(at) if isinstance(at, str) else at
    return max(0.0, (found.replace(tzinfo=now.tzinfo) - now).total_seconds()) + 0.05


def ahead() -> float:
    return clock.ahead.total_seconds()
