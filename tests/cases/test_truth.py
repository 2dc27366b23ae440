"""What a book shows, late, twice, on another page or not at all: each case as support staff would tell it."""

from dataclasses import replace

import pytest

from actions import dispatch
from actions.errors import UnsettledDuplicate
from actions.models import Downstream, Intent, Kind
from actions.statuses import Status
from reconciliation import checks
from reconciliation.models import Verdict
from tests.flow.test_finding_the_truth import add_entry, unknown
from tests.flow.world import World


def own(intent: Intent, **columns: object) -> dict[str, object]:
    return {"amount_minor": 5_000, "currency": "EUR", "idempotency_key": intent.idempotency_key} | columns


def test_a_refund_that_the_book_shows_only_after_30_s_is_too_early_until_then_and_confirmed_at_90(
    world: World,
) -> None:
    Downstream.objects.update(lag_s=60)
    intent = unknown(world, "order-1")
    for seconds in (2, 18):
        world.later(seconds)
        assert world.check(intent).verdict == Verdict.TOO_EARLY
        assert world.read(intent).status == Status.UNKNOWN
    add_entry(world, "order-1", **own(intent))
    world.later(70)
    world.check(intent)
    assert world.read(intent).status == Status.CONFIRMED


def test_of_130_entries_at_100_a_page_ours_on_page_2_is_found(world: World) -> None:
    Downstream.objects.update(look_up="subject")
    intent = unknown(world, "order-2")
    for number in range(129):
        add_entry(world, "order-2", amount_minor=100 + number, currency="EUR", idempotency_key=f"other-{number}")
    add_entry(world, "order-2", **own(intent))
    world.later(3)
    check = world.check(intent)
    assert len(intent.evidence.filter(kind="page")) == 2
    assert (check.verdict, world.read(intent).status) == (Verdict.MATCH, Status.CONFIRMED)


def test_two_refunds_of_18_without_keys_and_two_unknown_intents_are_both_for_people_who_see_both(
    world: World,
) -> None:
    Kind.objects.update(look_alike_policy="allow")
    one = unknown(world, "order-3", amount="18.00")
    two = unknown(world, "order-4", amount="18.00")
    # Two of ours that concern one order, as when the guard was waived.
    Intent.objects.filter(pk=two.pk).update(subject="order-3", family="order-3")
    for _ in range(2):
        add_entry(world, "order-3", amount_minor=1_800, idempotency_key=None)
    for intent in (one, two):
        check = world.check(intent)
        assert check.verdict == Verdict.AMBIGUOUS
        assert len(check.grounds_data["candidates"]) == 2
        assert world.read(intent).status == Status.UNKNOWN
        assert world.review(intent).reasons.get().code == "ambiguous"


def test_a_worker_that_died_26_hours_ago_in_the_middle_of_a_call_is_for_a_person_and_blocks_its_order(
    world: World,
) -> None:
    intent = world.propose("order-5")
    (claimed,) = dispatch.claim(slots=1)
    assert claimed.intent_id == intent.pk
    world.later(26 * 3_600)
    world.sweep()
    for _ in range(3):
        world.later(60)
        world.check(intent)
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "lease_over")
    review = world.review(intent)
    assert (review.recommendation, review.reasons.get().code) == ("fail", "still_unknown")
    with pytest.raises(UnsettledDuplicate):
        world.propose("order-5", "20.00")


def test_pending_in_a_200_and_no_webhook_ever_is_found_by_polling(world: World) -> None:
    world.sandbox.order_fault("order-6", "pending")
    intent = world.propose("order-6")
    world.send()
    found = world.read(intent)
    assert (found.status, found.lease_until, bool(found.external_id)) == ("submitted", None, True)
    assert found.next_check_at is not None
    assert found.attempts.get().closed_at is not None, "no place is taken meanwhile"
    with pytest.raises(UnsettledDuplicate):
        world.propose("order-6", "20.00")


def test_a_final_state_days_later_settles_what_was_pending_although_a_person_has_the_case(world: World) -> None:
    intent = unknown(world, "order-7")
    add_entry(world, "order-7", **own(intent, status="pending"))
    world.later(2_000)
    assert world.check(intent).verdict == Verdict.PENDING
    assert world.review(intent).closed_at is None, "it has taken too long"
    world.later(3 * 86_400)
    world.make_due(intent)
    (claimed,) = checks.claim(limit=1)
    (page, *_) = checks.look(claimed).pages
    final = replace(page.entries[0], state="final")
    checks.act(claimed, checks.Looked(pages=(replace(page, entries=(final,)),)))
    assert world.read(intent).status == Status.CONFIRMED
    assert not world.read(intent).reviews.filter(closed_at=None).exists()


@pytest.mark.parametrize(
    ("columns", "verdict"),
    [
        ({"amount_minor": 4_999}, Verdict.PARTIAL),
        ({"currency": "USD"}, Verdict.MISMATCH),
        ({"type": "fee"}, Verdict.MISMATCH),
        ({"order": "another-order"}, Verdict.ABSENT),
    ],
    ids=["less", "another currency", "another type", "another order"],
)
def test_what_the_book_shows_otherwise_is_a_clear_verdict_with_its_evidence_and_nothing_is_guessed(
    world: World, columns: dict[str, object], verdict: Verdict
) -> None:
    intent = unknown(world, "order-8")
    order = str(columns.pop("order", "order-8"))
    found = own(intent, **columns)
    if order != "order-8":
        found["idempotency_key"] = "of-another-intent"
    add_entry(world, order, **found)
    world.later(5)
    check = world.check(intent)
    assert check.verdict == verdict
    assert world.read(intent).status == Status.UNKNOWN
    assert intent.evidence.filter(kind="page").exists()
