"""RQ's entry points, and the doorbell. Jobs carry no work: they look into the database for what is due.

A job may run twice, late or never. So nothing here is a promise; the clock rings for whatever was missed.
"""

import logging
import secrets
import time

import django_rq
from django.db import transaction
from redis.exceptions import RedisError

from actions import dispatch

log = logging.getLogger(__name__)

SEND, CHECK = "send", "check"
_ENTRY = {SEND: "actions.jobs.send_due", CHECK: "reconciliation.jobs.check_due"}
# For so long one ring stands for all of them; the job clears it before its first query.
_THINNED_S = 5


# After a ring that failed, this process lets so many seconds pass before it tries again: else every proposal would
# wait for a frozen Redis. Workers look by themselves meanwhile.
_PAUSE_S = 2.0
_next_try = 0.0


def _bell(queue: str) -> str:
    return f"landed:bell:{queue}"


def ring(queue: str) -> bool:
    """Asks some worker to look for what is due. Never raises; False when Redis is away.

    Plain enqueues with fresh ids and short lives: RQ's `unique` would keep refusing an id long after its worker
    was killed. A short-lived key keeps a thousand rings from becoming a thousand jobs.
    """
    global _next_try  # noqa: PLW0603  one Redis, one pause, whichever thread notices
    if time.monotonic() < _next_try:
        return False
    try:
        jobs = django_rq.get_queue(queue)
        if not jobs.connection.set(_bell(queue), "1", nx=True, ex=_THINNED_S):
            if not 0 <= jobs.connection.ttl(_bell(queue)) <= _THINNED_S:
                jobs.connection.expire(_bell(queue), _THINNED_S)  # not ours: it would silence every ring to come
            return True
        jobs.enqueue_call(
            _ENTRY[queue],
            job_id=f"{queue}-{secrets.token_hex(8)}",
            result_ttl=0,
            failure_ttl=0,
            ttl=60,
        )
    except (RedisError, OSError) as away:
        _next_try = time.monotonic() + _PAUSE_S
        log.warning("no ring for %s: %s", queue, away)
        return False
    return True


def ring_after_commit(queue: str) -> None:
    """Rings once the open transaction is committed, at once without one; never after a rollback."""
    # No partial: Django's robust=True logs a failure by the function's name, which a partial lacks.
    transaction.on_commit(lambda: ring(queue), robust=True)


def hush(queue: str) -> None:
    """Lets the next ring through; a job calls it before its first query, so that no later row is missed."""
    try:
        django_rq.get_queue(queue).connection.delete(_bell(queue))
    except (RedisError, OSError) as away:
        log.warning("the bell of %s stays: %s", queue, away)


def send_due(budget_s: float = 10.0) -> int:
    """Sends what is due until nothing is, or the budget (seconds) is used. Returns how many were claimed."""
    hush(SEND)
    return dispatch.run(budget_s=budget_s)
