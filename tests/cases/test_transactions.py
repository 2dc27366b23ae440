"""Whose transaction it is: an outbox joins it, and whoever sends for themselves must not be inside one."""

import threading
from contextlib import nullcontext

import pytest
from django.db import connection, transaction

from actions import services as actions
from actions.errors import InsideTransaction
from actions.models import Intent
from tests.flow.world import World


@pytest.mark.parametrize("executor", ["landed", "caller"])
@pytest.mark.parametrize("atomic", [False, True])
def test_a_transaction_that_is_managed_by_hand_is_not_joined(world: World, executor: str, atomic: bool) -> None:
    """With autocommit off atomic blocks commit nothing, or on SQLite too early: what was sent would be erased, what
    was rolled back would be sent."""
    transaction.set_autocommit(False)
    try:
        with pytest.raises(InsideTransaction, match="by hand"), transaction.atomic() if atomic else nullcontext():
            world.propose("order-1", executor=executor)
    finally:
        transaction.rollback()
        transaction.set_autocommit(True)
    assert Intent.objects.count() == 0
    assert world.propose("order-1", executor=executor).subject == "order-1", "and with autocommit on, all is well"


def test_what_a_savepoint_took_back_is_never_sent_and_what_was_around_it_is(world: World) -> None:
    with transaction.atomic():
        kept = world.propose("order-1")
        with pytest.raises(ZeroDivisionError), transaction.atomic():
            world.propose("order-2")
            _ = 1 / 0
    world.send()
    assert (world.posts(kept), world.sandbox.requests("order-2")) == (1, [])
    assert Intent.objects.get() == kept


def test_a_worker_that_looks_before_the_commit_sends_nothing(world: World) -> None:
    """PostgreSQL: another connection looks in the middle. SQLite: it waits for the writer, and finds it committed."""
    sent: list[int] = []

    def look() -> None:
        sent.append(world.send())
        connection.close()

    worker = threading.Thread(target=look)
    with transaction.atomic():
        intent = world.propose("order-1")
        worker.start()
        if connection.vendor == "postgresql":
            worker.join(10)
            assert (sent, world.sandbox.requests("order-1")) == ([0], [])
    worker.join(10)
    world.send()
    assert (world.read(intent).status, world.posts(intent)) == ("confirmed", 1)


def test_the_refusal_says_what_to_do(world: World) -> None:
    with transaction.atomic(), pytest.raises(InsideTransaction) as told:
        actions.record_intent(
            kind=world.kind.name, subject="o", amount="1.00", currency="EUR", executor="caller", request_key="k"
        )
    assert told.value.code == "inside_transaction"
    assert "transaction" in str(told.value)
    assert world.propose("o", "1.00", executor="caller", request_key="k").status == "submitted", "the key is free"
