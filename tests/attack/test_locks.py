"""Nobody waits for each other in a circle: PostgreSQL would end one of them, and a request with it."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection, transaction

from actions import dispatch, evidence, times
from actions.connectors import registry
from actions.locking import for_change
from actions.models import Intent
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import ReasonCode
from reconciliation.reviews import commenting, opening
from tests.factories import make_person
from tests.flow.world import World


def beside(act: Callable[[], object]) -> tuple[threading.Thread, list[BaseException]]:
    """Runs `act` in a thread with a connection of its own."""
    problems: list[BaseException] = []

    def run() -> None:
        try:
            act()
        except BaseException as problem:
            problems.append(problem)
        finally:
            connection.close()

    thread = threading.Thread(target=run)
    thread.start()
    return thread, problems


def slowly(monkeypatch: pytest.MonkeyPatch, module: Any, name: str, seconds: float = 0.4) -> None:
    """Gives everybody time to come in between, right after `module.name` is done."""
    real = getattr(module, name)

    def wrapped(*args: Any, **more: Any) -> Any:
        found = real(*args, **more)
        time.sleep(seconds)
        return found

    monkeypatch.setattr(module, name, wrapped)


def test_a_late_answer_and_a_check_that_settles_do_not_wait_in_a_circle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Evidence of an answer refers to the intent; settling gives up its unique guard key, which waits for that."""
    intent = world.propose("order-1")
    (claimed,) = dispatch.claim(slots=1)
    reply = dispatch.send(claimed)
    world.later(60)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN
    world.make_due(intent)
    (look,) = checks.claim(limit=1)
    looked = checks.look(look)
    slowly(monkeypatch, evidence, "store")
    answer, problems = beside(lambda: dispatch.save(claimed, reply))
    time.sleep(0.1)
    checks.act(look, looked)
    answer.join()
    assert problems == []
    assert world.read(intent).status == Status.CONFIRMED


def test_a_comment_and_a_check_that_settles_do_not_wait_in_a_circle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.sandbox.order_fault("order-2", "lose_response")
    intent = world.propose("order-2")
    world.send()
    with transaction.atomic():
        opening.open_for_outcome(for_change(Intent).get(pk=intent.pk), ReasonCode.REQUESTED, now=times.now())
    review, person = world.review(intent), make_person()
    world.make_due(intent)
    (look,) = checks.claim(limit=1)
    looked = checks.look(look)
    slowly(monkeypatch, commenting.evidence, "store")
    comment, problems = beside(lambda: commenting.comment(review.pk, person=person, text="I am looking."))
    time.sleep(0.1)
    checks.act(look, looked)
    comment.join()
    assert problems == []
    assert world.read(intent).status == Status.CONFIRMED
    assert review.comments.count() == 1


def test_a_dispute_and_a_claim_on_one_order_do_not_wait_in_a_circle(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A dispute holds the family and wants what is recorded in it; a claim holds that and wants the family."""
    world.sandbox.order_fault("order-3", "error_500_not_booked")
    failed = world.propose("order-3")
    world.send()
    for _ in range(2):
        world.later(5)
        world.check(failed)
    assert world.read(failed).status == Status.FAILED
    other = world.propose("order-3", "20.00")
    body = {"order": "order-3", "amount_minor": 5000, "currency": "EUR", "type": "refund", "status": "succeeded"}
    world.sandbox.call("POST", "/_control/entries", body | {"idempotency_key": failed.idempotency_key})
    world.make_due(failed)
    (look,) = checks.claim(limit=1)
    looked = checks.look(look)
    slowly(monkeypatch, registry, "get", 0.4)
    claim, problems = beside(lambda: dispatch.claim(slots=1))
    time.sleep(0.1)
    checks.act(look, looked)
    claim.join()
    assert problems == []
    assert world.read(other).status in (Status.HELD, Status.SUBMITTED)
    assert world.read(failed).disputed
