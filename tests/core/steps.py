"""Short steps that the tests here share: sending without a network, racing, forging."""

import threading
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar

from django.db import connection, transaction

from actions import history, outcomes, times, transitions
from actions.models import Attempt, ClosedBy, Executor, Intent, Result
from actions.outcomes import Outcome
from actions.proposals import Proposal
from actions.reasons import Reason
from actions.recording import Recorded, record
from actions.statuses import Actor, Status
from tests.flushing import without_triggers

R = TypeVar("R")


def read(intent: Intent) -> Intent:
    return Intent.objects.select_related("policy").get(pk=intent.pk)


def submit(intent: Intent, *, lease_s: float = 30, now: datetime | None = None) -> Attempt:
    """Claims as a worker does: status and attempt together, one fence up."""
    with transaction.atomic():
        found, at = read(intent), now or times.now()
        lease = at + timedelta(seconds=lease_s)
        transitions.apply(
            found.pk,
            expected=(Status.RECORDED, Status.UNKNOWN),
            to=Status.SUBMITTED,
            actor=Actor.WORKER,
            actor_id="worker:test/1",
            reason=Reason.CLAIMED,
            now=at,
            new_fence=found.fence + 1,
            lease_until=lease,
            first_maybe_sent_at=found.first_maybe_sent_at or at,
        )
        return Attempt.objects.create(
            intent=found,
            number=found.attempts.count() + 1,
            fence=found.fence + 1,
            executor=Executor.LANDED,
            claimed_at=at,
            lease_until=lease,
        )


def answer(attempt: Attempt, result: Result, *, reason: str = "test", **more: Any) -> Intent:
    """The attempt's own answer, saved as a worker saves it."""
    return outcomes.apply_outcome(
        attempt.pk,
        Outcome(result=result, reason=reason, **more),
        actor=Actor.WORKER,
        actor_id="worker:test/1",
        closed_by=ClosedBy.ANSWER,
    )


def expire(intent: Intent) -> Intent:
    return outcomes.expire_lease(intent.pk, now=times.now(), clock_id="clock:test/1")


def settle(intent: Intent, to: Status, **columns: Any) -> Intent:
    """From recorded to confirmed or failed, by one attempt and its answer."""
    result = Result.CONFIRMED if to is Status.CONFIRMED else Result.REFUSED
    return answer(submit(intent), result, **columns)


def propose(agent: Any, kind: Any, *, request_key: str | None = None, **fields: Any) -> Recorded:
    found: dict[str, Any] = {"kind": kind.name, "subject": "order-4812", "amount": "50.00", "currency": "EUR"}
    return record(Proposal(**(found | fields)), agent=agent, request_key=request_key)


def race(number: int, act: Callable[[int], R]) -> list[R | Exception]:
    """Runs `act` in so many real threads that start together; what each returned or raised, in order."""
    results: list[Any] = [None] * number
    barrier = threading.Barrier(number)

    def run(index: int) -> None:
        try:
            barrier.wait(20)
            results[index] = act(index)
        except Exception as raised:
            results[index] = raised
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=[index]) for index in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


class _Undo(Exception):
    pass


def faults_after(intent: Intent, forge: Callable[[], object]) -> list[str]:
    """What the verifier says once `forge` has written past the triggers; the forgery is undone."""
    found: list[str] = []
    with suppress(_Undo), without_triggers():
        forge()
        found = history.faults(Intent.objects.get(pk=intent.pk))
        raise _Undo
    return found
