"""Where the books can be looked into, a webhook is a reason to look, and no more."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from actions import jobs, times
from actions.connectors import registry
from actions.connectors.base import Notice
from actions.models import Intent, Result
from actions.statuses import Status
from reconciliation import checks, ties
from reconciliation.models import Check, LedgerEntry, MatchRole
from tests.core.steps import answer, settle, submit
from tests.factories import make_intent
from tests.flow.world import World
from tests.hooks.hooking import Hooks, Says, make_hooks


@pytest.fixture
def rung(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []
    monkeypatch.setattr(jobs, "ring_after_commit", found.append)
    return found


def lost(world: World, subject: str, fault: str = "lose_response") -> Intent:
    world.sandbox.order_fault(subject, fault)
    intent = world.propose(subject)
    world.send()
    return world.read(intent)


def book(world: World, intent: Intent) -> str:
    """The sandbox's ledger shows it from now on. The entry's id."""
    row = {"order": intent.subject, "amount_minor": 5_000, "currency": "EUR", "type": "refund", "status": "succeeded"}
    reply = world.sandbox.call("POST", "/_control/entries", row | {"idempotency_key": intent.idempotency_key})
    assert reply.status == 201, reply.body
    return str(reply.json["id"])


def hearing(world: World) -> Hooks:
    return Hooks(world.downstream, world.kind, world.clock)


def test_an_unknown_one_is_looked_up_now_and_the_workers_are_told(watched: Hooks, rung: list[str]) -> None:
    intent = watched.unknown()
    planned = intent.next_check_at
    delivery = watched.tell(intent)
    found = watched.sound(intent, Status.UNKNOWN)
    assert found.next_check_at is not None
    assert planned is not None
    assert found.next_check_at < planned
    assert found.next_check_at <= times.now()
    assert (delivery.outcome, rung) == ("look_asked", ["check"])
    assert watched.checks(intent) == [], "its content is no evidence where there is a book"
    assert LedgerEntry.objects.count() == 1


def test_a_look_that_is_due_already_stays_as_planned(watched: Hooks) -> None:
    intent = watched.unknown()
    long_ago = intent.created_at - timedelta(seconds=5)
    Intent.objects.filter(pk=intent.pk).update(next_check_at=long_ago)
    watched.tell(intent)
    assert watched.read(intent).next_check_at == long_ago


def test_a_submitted_one_whose_own_answer_is_not_here_yet_is_looked_up(watched: Hooks) -> None:
    intent = watched.submitted()
    assert intent.next_check_at is None
    watched.tell(intent)
    found = watched.sound(intent, Status.SUBMITTED)
    assert found.next_check_at is not None
    assert found.lease_until == intent.lease_until


def test_when_its_own_answer_comes_in_between_and_says_nothing_the_look_is_asked_for_again(watched: Hooks) -> None:
    """Becoming unknown plans the looks anew, half a minute from then."""
    intent = make_intent(watched.kind)
    attempt = submit(intent)
    delivery = watched.tell(intent)
    answer(attempt, Result.NO_ANSWER)
    watched.later(6)
    watched.sweep()
    due = watched.sound(intent, Status.UNKNOWN).next_check_at
    assert due is not None
    assert due <= times.now()
    delivery.refresh_from_db()
    assert delivery.outcome == "look_asked"


@pytest.mark.parametrize("status", ["succeeded", "pending"])
def test_a_confirmed_one_of_which_it_says_the_same_is_not_looked_up(watched: Hooks, status: str) -> None:
    """The usual case: one look less for every refund that went well."""
    intent = make_intent(watched.kind)
    settle(intent, Status.CONFIRMED, external_id=f"re_{intent.pk}")
    assert watched.tell(intent, status=status).outcome == "known"
    assert watched.sound(intent, Status.CONFIRMED).next_check_at is None


def test_a_confirmed_one_that_is_tied_to_the_entry_is_not_looked_up_either(watched: Hooks) -> None:
    intent = make_intent(watched.kind)
    settle(intent, Status.CONFIRMED)
    assert watched.tell(intent).outcome == "look_asked", "its answer named no id: the entry is to be found"
    ties.tie(LedgerEntry.objects.get(), intent, MatchRole.SETTLES, by="checker", now=times.now())
    assert watched.tell(intent).outcome == "known"


@pytest.mark.parametrize(
    "entry",
    [{"amount_minor": 4_000}, {"status": "failed"}, {"type": "reversal"}, {"id": "re_another"}],
)
def test_a_confirmed_one_of_which_it_says_something_else_is(watched: Hooks, entry: dict[str, Any]) -> None:
    intent = make_intent(watched.kind)
    settle(intent, Status.CONFIRMED, external_id=f"re_{intent.pk}")
    delivery = watched.tell(intent, **entry)
    # What was not carried out says something only once no other attempt can show: until then it is kept.
    assert delivery.outcome == ("" if "status" in entry else "look_asked")
    watched.later(130)
    watched.sweep()
    delivery.refresh_from_db()
    assert delivery.outcome == "look_asked"
    assert watched.sound(intent, Status.CONFIRMED).next_check_at is not None


def test_what_changed_since_it_was_final_is_looked_up(watched: Hooks) -> None:
    intent = make_intent(watched.kind)
    settle(intent, Status.CONFIRMED, external_id=f"re_{intent.pk}")
    assert watched.tell(intent).outcome == "known"
    assert watched.tell(intent, amount_minor=4_000).outcome == "look_asked"
    assert LedgerEntry.objects.get().amount_minor == 5_000, "the row keeps what it said when it became final"


def test_a_failed_one_is_looked_up_when_it_shows_up_and_not_when_it_agrees(watched: Hooks) -> None:
    intent = make_intent(watched.kind)
    settle(intent, Status.FAILED)
    assert watched.tell(intent, status="failed").outcome == "known"
    assert watched.tell(intent, id="re_second").outcome == "look_asked"
    assert watched.sound(intent, Status.FAILED).next_check_at is not None


def test_one_that_only_names_it_is_a_reason_to_look_as_well(watched: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    intent = make_intent(watched.kind)
    settle(intent, Status.CONFIRMED)
    monkeypatch.setattr(
        registry, "get", lambda _: Says(Notice("evt_thin", times.now(), keys=(intent.idempotency_key,)))
    )
    assert watched.deliver({}).status_code == 204
    assert watched.read(intent).next_check_at is not None


def test_one_that_names_a_subject_alone_looks_up_what_is_open_on_it(
    watched: Hooks, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_, other = watched.unknown(subject="order-5"), watched.unknown(subject="order-5/line-2", guard_key=None)
    unsent = make_intent(watched.kind, subject="order-5", guard_key=None)
    done = make_intent(watched.kind, subject="order-5", guard_key=None)
    settle(done, Status.FAILED)
    confirmed = make_intent(watched.kind, subject="order-5", guard_key=None)
    settle(confirmed, Status.CONFIRMED)
    monkeypatch.setattr(registry, "get", lambda _: Says(Notice("evt_subject", times.now(), subjects=("order-5",))))
    others = (other, unsent, done, confirmed)
    planned = [watched.read(one).next_check_at for one in others]
    assert watched.deliver({}).status_code == 204
    found = watched.read(open_).next_check_at
    assert found is not None
    assert found <= times.now()
    assert [watched.read(one).next_check_at for one in others] == planned


def test_one_that_was_said_not_to_be_processed_is_not_sent_and_looked_up(watched: Hooks) -> None:
    intent = make_intent(watched.kind)
    answer(submit(intent), Result.NOT_SENT, reason="not_processed")
    watched.tell(intent)
    found = watched.sound(intent, Status.UNKNOWN)
    assert (found.status_reason, found.next_attempt_at) == ("contradicted", None)
    assert found.next_check_at is not None
    assert found.next_check_at <= times.now()


def test_a_look_that_was_under_way_does_not_swallow_the_news(world: World) -> None:
    """It may have read its page a moment before; another one is made."""
    intent = lost(world, "order-w1", "error_500_not_booked")
    world.later(5)
    world.make_due(intent)
    (claimed,) = checks.claim(limit=5)
    looked = checks.look(claimed)
    hearing(world).tell(intent, id=book(world, intent))
    asked = world.read(intent).next_check_at
    check = checks.act(claimed, looked)
    assert (check.verdict, check.counts_as_absence) == ("absent", False), "it is no absence any more"
    assert world.read(intent).next_check_at == asked
    assert checks.run(budget_s=5) == 1
    hearing(world).sound(intent, Status.CONFIRMED)


def test_an_absence_seen_by_a_look_that_the_news_overtook_counts_as_none(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    intent = lost(world, "order-w7", "error_500_not_booked")
    world.later(5)
    world.make_due(intent)
    (claimed,) = checks.claim(limit=5)
    looked = checks.look(claimed)
    with monkeypatch.context() as patch:
        thin = Says(Notice("evt_thin", times.now(), keys=(intent.idempotency_key,)))
        patch.setattr(registry, "get", lambda _: thin)
        assert hearing(world).deliver({}).status_code == 204
    check = checks.act(claimed, looked)
    assert (check.verdict, check.counts_as_absence) == ("absent", False)


def test_what_a_webhook_told_of_is_never_absent_however_often_the_book_does_not_show_it(world: World) -> None:
    intent = lost(world, "order-w2", "error_500_not_booked")
    hearing(world).tell(intent)
    for _ in range(4):
        world.later(5)
        assert world.check(intent).verdict == "absent"
    assert not Check.objects.filter(counts_as_absence=True).exists()
    hearing(world).sound(intent, Status.UNKNOWN)
    world.later(700)
    world.check(intent)
    assert hearing(world).reasons(intent) == ["still_unknown"]
    # Once it is called off, the book's silence counts again.
    hearing(world).tell(intent, status="failed")
    for _ in range(2):
        world.later(5)
        world.check(intent)
    hearing(world).sound(intent, Status.FAILED)


def test_a_slow_look_does_not_turn_back_what_a_newer_webhook_told(world: World) -> None:
    intent = lost(world, "order-w3")
    world.make_due(intent)
    (claimed,) = checks.claim(limit=5)
    looked = checks.look(claimed)
    world.later(10)
    (row,) = world.booked(intent)
    hearing(world).tell(intent, id=row["id"], status="failed")
    check = checks.act(claimed, looked)
    assert LedgerEntry.objects.get().state == "failed"
    assert check.verdict != "match" or check.grounds_data["entry_failed"]


def test_failed_by_absence_and_then_a_webhook_says_otherwise_is_looked_up_and_disputed(world: World) -> None:
    intent = lost(world, "order-w4", "error_500_not_booked")
    for _ in range(2):
        world.later(5)
        world.check(intent)
    assert world.read(intent).status == Status.FAILED
    book(world, intent)
    (entry,) = world.booked(intent)
    assert hearing(world).deliver(entry).status_code == 204
    assert checks.run(budget_s=5) == 1
    found = hearing(world).sound(intent, Status.FAILED)
    assert (found.disputed, hearing(world).reasons(intent)) == (True, ["contradiction"])
    assert hearing(world).deliver(entry).status_code == 204
    assert hearing(world).outcomes() == {"look_asked": 2}, "the same again: where somebody looks, that is what tells"


def test_a_settled_one_is_found_by_subject_only_where_the_downstream_itself_never_said_no(watched: Hooks) -> None:
    """What was refused stays refused, whatever else is booked on its order."""
    refused = make_intent(watched.kind, subject="order-7")
    settle(refused, Status.FAILED)
    watched.tell(refused, idempotency_key=..., id="re_foreign")
    assert watched.read(refused).next_check_at is None


def test_entries_told_by_a_webhook_and_shown_by_a_look_are_one_row(world: World) -> None:
    intent = lost(world, "order-w5")
    (row,) = world.booked(intent)
    hearing(world).tell(intent, id=row["id"])
    assert checks.run(budget_s=5) == 1
    assert LedgerEntry.objects.count() == 1
    hearing(world).sound(intent, Status.CONFIRMED)


def test_the_workers_are_left_alone_where_a_service_looks(watched: Hooks, rung: list[str], clock: Any) -> None:
    hooks = make_hooks(clock, look_up="service")
    intent = hooks.unknown()
    assert hooks.tell(intent).outcome == "look_asked"
    assert rung == []
    due = hooks.read(intent).next_check_at
    assert due is not None
    assert due <= times.now()
    assert checks.claim(limit=5) == []


def test_a_claimed_look_that_nobody_asked_about_counts_as_before(world: World) -> None:
    intent = lost(world, "order-w6", "error_500_not_booked")
    world.later(5)
    world.make_due(intent)
    (claimed,) = checks.claim(limit=5)
    assert checks.act(claimed, checks.look(claimed)).counts_as_absence
    assert replace(claimed, until=None).until is None
