"""Settled intents keep listening: reversals, second entries, other amounts, and what never turned up."""

import pytest

from actions.models import Downstream, Intent, Kind, SettledBy
from actions.outcomes import relook_lot
from actions.statuses import Status
from reconciliation.models import Match, MatchRole, ReasonCode, Review, Verdict
from tests.flow.test_finding_the_truth import add_entry
from tests.flow.world import World


def confirmed(world: World, subject: str, **kind: object) -> Intent:
    Kind.objects.update(**({"relook": "all"} | kind))
    intent = world.propose(subject)
    world.send()
    found = world.read(intent)
    assert (found.status, found.settled_by) == (Status.CONFIRMED, SettledBy.ANSWER)
    return found


def contradictions(intent: Intent) -> list[str]:
    return list(Review.objects.filter(intent=intent, closed_at=None).values_list("reasons__code", flat=True))


def own(intent: Intent, **columns: object) -> dict[str, object]:
    return {"idempotency_key": intent.idempotency_key} | columns


def test_what_an_answer_confirmed_is_looked_up_once_and_tied_to_its_entry(world: World) -> None:
    intent = confirmed(world, "order-1")
    assert intent.next_check_at is not None
    assert world.check(intent).verdict == Verdict.MATCH
    found = world.read(intent)
    assert (found.status, found.disputed, found.next_check_at) == (Status.CONFIRMED, False, None)
    tie = Match.objects.get(intent=intent)
    assert (tie.role, tie.entry.entry_id) == (MatchRole.SETTLES, intent.external_id)


@pytest.mark.parametrize(
    ("relook", "amount", "looked_up"),
    [
        ("none", "600.00", False),
        ("above_limit", "50.00", False),
        ("above_limit", "600.00", True),
        ("all", "5.00", True),
        ("share", "600.00", None),
    ],
)
def test_a_kind_says_which_of_them(world: World, relook: str, amount: str, looked_up: bool | None) -> None:
    Kind.objects.update(relook=relook, relook_percent=50 if relook == "share" else None)
    intent = world.propose("order-2", amount)
    world.send()
    if looked_up is None:
        looked_up = relook_lot(intent) < 50
    assert (world.read(intent).next_check_at is not None) is looked_up


@pytest.mark.parametrize(
    ("relook", "percent", "amount"), [("share", 99, "50.00"), ("above_limit", None, "600.00"), ("all", None, "5.00")]
)
def test_a_look_afterwards_that_the_book_contradicts_is_a_contradiction(
    world: World, relook: str, percent: int | None, amount: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("actions.outcomes.relook_lot", lambda _: 98)
    Kind.objects.update(relook=relook, relook_percent=percent)
    intent = world.propose("order-11", amount)
    world.send()
    found = world.read(intent)
    assert (found.status, found.next_check_at is not None) == (Status.CONFIRMED, True)
    add_entry(world, "order-11", **own(intent, amount_minor=found.amount_minor, type="refund", status="succeeded"))
    assert world.check(intent).verdict == Verdict.DUPLICATE
    assert contradictions(intent) == [ReasonCode.CONTRADICTION]


def test_a_book_that_never_shows_it_contradicts_the_answer_but_only_as_often_as_absences_are_asked_for(
    world: World,
) -> None:
    world.sandbox.call("POST", "/_control/config", {"ledger_lag_s": 3_600})
    intent = confirmed(world, "order-3")
    world.later(10)
    world.check(intent)
    assert world.read(intent).disputed is False, "one absence of two"
    world.later(10)
    world.check(intent)
    found = world.read(intent)
    assert (found.status, found.disputed) == (Status.CONFIRMED, True)
    assert contradictions(intent) == [ReasonCode.CONTRADICTION]


def test_a_book_whose_silence_says_nothing_contradicts_nothing_and_is_not_asked_for_ever(world: World) -> None:
    Downstream.objects.update(absence_conclusive=False)
    world.sandbox.call("POST", "/_control/config", {"ledger_lag_s": 3_600})
    intent = confirmed(world, "order-4")
    for _ in range(10):
        world.later(10)
        world.check(intent)
    assert world.read(intent).disputed is False
    assert world.read(intent).next_check_at is None


@pytest.mark.parametrize("keyed", [True, False])
def test_confirmed_on_day_0_and_reversed_on_day_4_is_disputed_with_both_facts_and_frees_nothing(
    world: World, keyed: bool
) -> None:
    intent = confirmed(world, "order-5")
    row = own(intent, type="reversal", amount_minor=5_000, currency="EUR", status="succeeded")
    if not keyed:
        row.pop("idempotency_key")
    add_entry(world, "order-5", **row)
    world.later(4 * 86_400)
    check = world.check(intent)
    assert check.grounds_data["differs"] == ["reversed"]
    assert len(check.grounds_data["candidates"]) == 2
    found = world.read(intent)
    assert (found.status, found.disputed) == (Status.CONFIRMED, True)
    assert found.guard_key is not None
    assert contradictions(intent) == [ReasonCode.CONTRADICTION]


def test_what_is_recorded_on_that_subject_is_held(world: World) -> None:
    intent = confirmed(world, "order-6", look_alike_policy="allow")
    later = world.propose("order-6/line-2", "7.00")
    add_entry(
        world, "order-6", **own(intent, type="reversal", amount_minor=5_000, currency="EUR", status="succeeded")
    )
    world.check(intent)
    assert (world.read(later).status, world.read(later).status_reason) == ("held", "held_on_dispute")
    world.send()
    assert world.posts(later) == 0


def test_a_second_effect_under_its_key_is_a_contradiction(world: World) -> None:
    intent = confirmed(world, "order-7")
    add_entry(world, "order-7", **own(intent, amount_minor=5_000, currency="EUR", type="refund", status="succeeded"))
    assert world.check(intent).verdict == Verdict.DUPLICATE
    assert contradictions(intent) == [ReasonCode.CONTRADICTION]


def test_another_amount_than_was_settled_is_a_contradiction_and_the_settled_one_is_none(world: World) -> None:
    intent = confirmed(world, "order-8")
    world.check(intent)
    Intent.objects.filter(pk=intent.pk).update(settled_amount_minor=4_800)
    assert world.check(intent).verdict == Verdict.MISMATCH
    assert contradictions(intent) == [ReasonCode.CONTRADICTION]


def test_somebody_elses_reversal_on_the_order_is_none_of_ours(world: World) -> None:
    intent = confirmed(world, "order-9")
    add_entry(
        world,
        "order-9",
        type="reversal",
        amount_minor=5_000,
        currency="EUR",
        status="succeeded",
        idempotency_key="somebody-elses",
    )
    world.check(intent)
    assert world.read(intent).disputed is False


def test_failed_by_absence_and_then_its_entry_turns_up_while_a_new_one_is_recorded(world: World) -> None:
    """The new one is held, not sent."""
    world.sandbox.order_fault("order-10", "error_500_not_booked")
    intent = world.propose("order-10")
    world.send()
    for _ in range(2):
        world.later(5)
        world.check(intent)
    assert world.read(intent).status == Status.FAILED
    new = world.propose("order-10")
    add_entry(world, "order-10", **own(intent, amount_minor=5_000, currency="EUR", type="refund", status="succeeded"))
    world.later(3_600)
    world.check(intent)
    assert (world.read(intent).disputed, contradictions(intent)) == (True, [ReasonCode.CONTRADICTION])
    assert world.read(new).status == Status.HELD
    world.send()
    assert world.posts(new) == 1, "the first one's own POST"
