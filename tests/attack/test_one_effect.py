"""No second effect for one order while a first one may have happened."""

from collections.abc import Iterator
from typing import Any

import pytest

from actions import callers, dispatch, services
from actions.connectors import registry
from actions.connectors.base import Entry, Page
from actions.errors import LandedError, MayHaveHappened, UnsettledDuplicate
from actions.models import Intent
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Choice, DecisionReason
from reconciliation.reviews import opening
from tests.factories import make_person
from tests.flow.test_deciding import decide
from tests.flow.world import World


def waived(world: World) -> tuple[Intent, Intent]:
    """Two on one order: the second was sent because a person waived the guard for it, and its answer got lost."""
    world.kind.duplicate_policy = "hold"
    world.kind.save()
    world.sandbox.order_fault("order-1", "error_500_not_booked")
    first = world.propose("order-1")
    world.send()
    second = world.propose("order-1", "20.00")
    assert second.status == Status.HELD
    world.sandbox.order_fault("order-1", "lose_response")
    why = DecisionReason.JUSTIFIED
    decide(world.review(second), make_person(), Choice.APPROVE, reason=why, waive_guard=True)
    world.send()
    assert world.read(second).status == Status.UNKNOWN
    return first, second


@pytest.mark.parametrize("policy", ["refuse", "hold"])
def test_what_was_sent_on_a_waiver_blocks_the_next_one_once_the_first_is_settled(world: World, policy: str) -> None:
    """The waiver was for the second intent in so many words, not for whatever comes third."""
    first, second = waived(world)
    for _ in range(2):
        world.later(5)
        world.check(first)
    assert world.read(first).status == Status.FAILED
    assert world.read(second).status == Status.UNKNOWN
    world.kind.duplicate_policy = policy
    world.kind.save()
    if policy == "refuse":
        with pytest.raises(UnsettledDuplicate):
            world.propose("order-1", "20.00")
    else:
        assert world.propose("order-1", "20.00").status == Status.HELD
    world.send()
    assert len(world.booked(second)) == 1
    assert world.posts(second) == 2


def test_a_caller_whose_intent_a_person_failed_may_not_send_it_any_more(world: World) -> None:
    """The attempt is still open and its lease runs; the agent was told that it may propose again."""
    intent = world.propose("order-2", executor="caller", request_key="k-2")
    token = "a-token"
    Intent.objects.filter(pk=intent.pk).update(executor="caller")
    services.mark_not_sent(intent.pk, "by mistake")
    callers.claim(intent.pk, claim_token=token, actor_id="agent:1", lease_s=600)
    intent = world.read(intent)
    from django.db import transaction

    from actions import times
    from reconciliation.models import ReasonCode

    with transaction.atomic():
        opening.open_for_outcome(Intent.objects.get(pk=intent.pk), ReasonCode.REQUESTED, now=times.now())
    world.make_due(intent)
    world.check(intent)
    decide(world.review(intent), make_person("supervisor"), Choice.FAIL, note="Its process is gone.")
    assert world.read(intent).status == Status.FAILED
    with pytest.raises(MayHaveHappened):
        callers.claim(intent.pk, claim_token=token, actor_id="agent:1")


class Sloppy:
    """A ledger whose filter by key shows strangers too, and whose filter by order shows ours, without its key."""

    def __init__(self, real: Any) -> None:
        self.real = real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def look_up(self, target: Any, wanted: Any, fetch: Any, *, by: str) -> Iterator[Page]:
        if by == "key":
            yield Page("http://k", 200, (_entry("e-1", "somebody-elses-key", "order-0"),), "[]")
        else:
            yield Page("http://s", 200, (_entry("e-2", None, wanted.subject),), "[]")


def _entry(entry_id: str, key: str | None, subject: str) -> Entry:
    return Entry(entry_id, "effect", "final", key, subject, 5000, "EUR", None, {"id": entry_id})


def test_strangers_under_the_key_do_not_keep_the_second_way_from_being_looked_at(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No filter is trusted to have worked: only an entry that carries the key makes the second way needless."""
    world.sandbox.order_fault("order-3", "lose_response")
    intent = world.propose("order-3")
    world.send()
    sloppy = Sloppy(registry.get("http_json"))
    monkeypatch.setattr(registry, "get", lambda _: sloppy)
    for _ in range(3):
        world.later(5)
        if not world.read(intent).settled:
            world.check(intent)
    assert world.read(intent).status != Status.FAILED, "it is in the ledger under its order"


def test_forty_proposers_checks_and_sweeps_at_once_book_each_order_once(world: World) -> None:
    import threading

    from django.db import connection

    for n in range(4):
        world.sandbox.order_fault(f"order-4{n}", "lose_response")
    stop = threading.Event()
    problems: list[BaseException] = []

    def forever(act: Any) -> None:
        try:
            while not stop.is_set():
                act()
                stop.wait(0.02)
        except BaseException as problem:
            problems.append(problem)
        finally:
            connection.close()

    def propose(order: str) -> None:
        try:
            world.propose(order)
        except LandedError:
            pass
        except BaseException as problem:
            problems.append(problem)
        finally:
            connection.close()

    machines = [
        threading.Thread(target=forever, args=[act])
        for act in (
            lambda: dispatch.run(budget_s=0.5),
            lambda: dispatch.run(budget_s=0.5),
            lambda: checks.run(budget_s=0.5),
            lambda: checks.run(budget_s=0.5),
            world.sweep,
            world.sweep,
        )
    ]
    world.kind.look_alike_policy = "refuse"
    world.kind.save()
    people = [threading.Thread(target=propose, args=[f"order-4{n % 4}"]) for n in range(40)]
    for thread in [*machines, *people]:
        thread.start()
    for thread in people:
        thread.join()
    deadline = 100
    while deadline and Intent.objects.exclude(status=Status.CONFIRMED).exists():
        stop.wait(0.1)
        deadline -= 1
    stop.set()
    for thread in machines:
        thread.join()
    assert problems == []
    assert Intent.objects.count() == 4
    assert [len(world.sandbox.booked(f"order-4{n}")) for n in range(4)] == [1] * 4
