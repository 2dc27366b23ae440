"""Looking into the books: what proves something, what proves nothing, and who is asked then."""

import time
from dataclasses import replace
from typing import Any

import pytest

from actions import dispatch, history, outcomes, times
from actions.models import ClosedBy, Intent, Result
from actions.statuses import Actor, Status
from reconciliation import checks
from reconciliation.models import Check, LedgerEntry, Review, Verdict
from tests.factories import make_person
from tests.flow.test_sending import in_threads
from tests.flow.world import World


def unknown(world: World, subject: str, *, booked: bool = False, amount: str = "50.00") -> Intent:
    """An intent whose own answer proves nothing."""
    world.sandbox.order_fault(subject, "lose_response" if booked else "error_500_not_booked")
    intent = world.propose(subject, amount)
    world.send()
    return world.read(intent)


def add_entry(world: World, order: str, **columns: Any) -> None:
    found = {"order": order, "amount_minor": 5_000, "currency": "EUR", "type": "refund", "status": "succeeded"}
    reply = world.sandbox.call("POST", "/_control/entries", found | columns)
    assert reply.status == 201, reply.body


def test_absence_before_the_lag_is_too_early_and_proves_nothing(world: World) -> None:
    intent = unknown(world, "order-60")
    assert world.check(intent).verdict == Verdict.TOO_EARLY
    assert world.read(intent).status == Status.UNKNOWN


def test_absence_fails_it_only_as_often_as_the_kind_asks(world: World) -> None:
    intent = unknown(world, "order-61")
    world.later(5)
    assert world.check(intent).counts_as_absence is True
    assert world.read(intent).status == Status.UNKNOWN, "one absence is not enough"
    world.later(5)
    world.check(intent)
    found = world.read(intent)
    assert (found.status, found.settled_by, found.status_reason) == ("failed", "absence", "absent_from_ledger")
    assert found.next_check_at is not None, "it is looked up again later"
    assert history.faults(found) == []


def test_a_persons_look_never_counts_as_an_absence(world: World) -> None:
    intent = unknown(world, "order-62")
    world.later(5)
    for _ in range(4):
        check = checks.check_by_person(intent.pk, person=make_person())
        assert (check.verdict, check.counts_as_absence) == ("absent", False)
    assert world.read(intent).status == Status.UNKNOWN


def test_two_checks_at_the_same_moment_count_once(world: World) -> None:
    world.kind.absence_spacing_s = 2
    world.kind.save()
    intent = unknown(world, "order-63")
    world.later(5)
    (claimed,) = _claim(world, intent)
    looked = checks.look(claimed)
    in_threads(3, lambda: checks.act(claimed, looked))
    assert Check.objects.filter(intent=intent, counts_as_absence=True).count() == 1
    assert world.read(intent).status == Status.UNKNOWN


def _claim(world: World, intent: Intent) -> list[checks.Claimed]:
    world.make_due(intent)
    return checks.claim(limit=10)


def test_a_due_check_is_claimed_once_by_however_many(world: World) -> None:
    intent = unknown(world, "order-64")
    world.make_due(intent)
    claimed: list[checks.Claimed] = []
    in_threads(4, lambda: claimed.extend(checks.claim(limit=10)))
    assert len(claimed) == 1


def test_after_a_dead_worker_absence_is_for_a_person(world: World) -> None:
    from actions import dispatch

    intent = world.propose("order-65")
    dispatch.claim(slots=1)  # and then the worker dies
    world.later(60)
    world.sweep()
    for _ in range(3):
        world.later(5)
        world.check(intent)
    found, review = world.read(intent), world.review(intent)
    assert found.status == Status.UNKNOWN
    assert ([r.code for r in review.reasons.all()], review.recommendation) == (["still_unknown"], "fail")
    assert "never said how far it got" in review.grounds


@pytest.mark.parametrize(
    ("entry", "verdict"),
    [
        ({"amount_minor": 4_850}, "partial"),
        ({"amount_minor": 5_100}, "mismatch"),
        ({"currency": "USD"}, "mismatch"),
        ({"type": "reversal"}, "mismatch"),
        ({"status": "pending"}, "pending"),
    ],
)
def test_an_entry_with_our_key_and_other_facts_goes_to_a_person(
    world: World, entry: dict[str, Any], verdict: str
) -> None:
    intent = unknown(world, "order-66")
    add_entry(world, "order-66", idempotency_key=intent.idempotency_key, **entry)
    assert world.check(intent).verdict == verdict
    assert world.read(intent).status == Status.UNKNOWN
    assert Review.objects.filter(intent=intent).exists() is (verdict != "pending")


def test_an_entry_that_says_it_was_not_carried_out_fails_the_intent(world: World) -> None:
    world.sandbox.order_fault("order-67", "pending_then_failed", seconds=0.2)
    intent = world.propose("order-67")
    world.send()
    found = world.read(intent)
    assert (found.status, found.lease_until) == ("submitted", None), "accepted: the lease ends, polling goes on"
    time.sleep(0.4)
    assert world.check(intent).verdict == Verdict.TOO_EARLY, "before the lag it may still show otherwise"
    world.later(5)
    world.check(intent)
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("failed", "failed_in_ledger")


def test_two_entries_without_a_key_are_never_settled_by_machine(world: World) -> None:
    intent = unknown(world, "order-68")
    for _ in range(2):
        add_entry(world, "order-68")
    assert world.check(intent).verdict == Verdict.AMBIGUOUS
    assert world.read(intent).status == Status.UNKNOWN
    assert len(world.review(intent).intent.checks.last().grounds_data["candidates"]) == 2  # type: ignore[union-attr]


def test_one_entry_without_a_key_that_fits_in_everything_is_ours(world: World) -> None:
    intent = unknown(world, "order-69")
    add_entry(world, "order-69")
    check = world.check(intent)
    assert (check.verdict, check.grounds_data["by"]) == ("match", "subject")
    assert world.read(intent).status == Status.CONFIRMED


def test_an_entry_with_somebody_elses_key_is_somebody_elses(world: World) -> None:
    intent = unknown(world, "order-70")
    add_entry(world, "order-70", idempotency_key="a-clerk-did-it")
    world.later(5)
    assert world.check(intent).verdict == Verdict.ABSENT


def test_ours_on_the_second_page_is_found(world: World) -> None:
    intent = unknown(world, "order-71")
    for _ in range(5):
        add_entry(world, "order-71", idempotency_key="other")
    add_entry(world, "order-71")
    world.sandbox.configure(page_size=2)
    world.downstream.look_up = "subject"
    assert world.check(intent).verdict == Verdict.MATCH
    assert LedgerEntry.objects.count() >= 1


def test_a_ledger_that_cannot_be_read_concludes_nothing_and_then_asks_a_person(world: World) -> None:
    intent = unknown(world, "order-72", booked=True)
    world.sandbox.order_fault("order-72", "ledger_error", times=50)
    assert world.check(intent).verdict == Verdict.UNAVAILABLE
    assert Review.objects.count() == 0
    world.later(700)
    world.check(intent)
    review = world.review(intent)
    assert "can't be read" in review.grounds
    assert "failed" not in review.grounds


def test_failed_by_absence_and_then_it_shows_up_is_disputed(world: World) -> None:
    intent = unknown(world, "order-73")
    for _ in range(2):
        world.later(5)
        world.check(intent)
    assert world.read(intent).status == Status.FAILED
    add_entry(world, "order-73", idempotency_key=intent.idempotency_key)
    world.later(3_700)
    world.check(intent)
    found = world.read(intent)
    assert (found.status, found.disputed) == ("failed", True)
    assert found.guard_key is not None, "its subject is blocked again"
    assert [r.code for r in world.review(intent).reasons.all()] == ["contradiction"]


def test_an_unknown_without_any_look_up_is_asked_of_people_at_once(world: World) -> None:
    world.downstream.look_up = "none"
    world.downstream.absence_conclusive = False
    world.downstream.save()
    world.kind.downstream = world.downstream
    intent = unknown(world, "order-74")
    assert [r.code for r in world.review(intent).reasons.all()] == ["still_unknown"]
    assert intent.next_check_at is None


def test_a_check_under_an_old_fence_settles_nothing(world: World) -> None:
    intent = unknown(world, "order-75", booked=True)
    (claimed,) = _claim(world, intent)
    looked = checks.look(claimed)
    Intent.objects.filter(pk=intent.pk).update(fence=intent.fence + 1)
    check = checks.act(claimed, looked)
    assert check.verdict == Verdict.MATCH
    assert world.read(intent).status == Status.UNKNOWN


def test_evidence_seen_by_a_check_is_kept_page_by_page(world: World) -> None:
    intent = unknown(world, "order-76", booked=True)
    world.check(intent)
    (page,) = intent.evidence.filter(kind="page")
    assert intent.idempotency_key in page.text


def test_what_another_intents_answer_named_is_not_ours_as_well(world: World) -> None:
    """A was answered with re_1; the book shows re_1 without a key. B, unknown on the same order, is not re_1."""
    first = world.propose("order-77")
    world.send()
    first = world.read(first)
    assert first.status == Status.CONFIRMED
    world.kind.look_alike_policy = "allow"
    world.kind.save()
    second = unknown(world, "order-77")
    (entry,) = world.booked(first)
    seen = _without_key(world, second, entry["id"])
    assert seen.verdict in (Verdict.ABSENT, Verdict.TOO_EARLY)
    assert world.read(second).status == Status.UNKNOWN


def test_what_may_be_another_ones_second_booking_is_for_a_person(world: World) -> None:
    """A was carried out and confirmed; B, for the same, was not. An entry that fits both may be A's, booked twice."""
    first = world.propose("order-79")
    world.send()
    assert world.read(first).status == Status.CONFIRMED
    world.kind.look_alike_policy = "allow"
    world.kind.save()
    second = unknown(world, "order-79")
    add_entry(world, "order-79")
    assert world.check(second).verdict == Verdict.AMBIGUOUS
    assert world.read(second).status == Status.UNKNOWN


def test_what_was_confirmed_long_before_can_t_have_been_booked_again_now(world: World) -> None:
    first = world.propose("order-79")
    world.send()
    world.later(3_600)
    world.kind.look_alike_policy = "allow"
    world.kind.save()
    second = unknown(world, "order-79")
    add_entry(world, "order-79", created=times.now().isoformat())
    assert world.read(first).status == Status.CONFIRMED
    assert world.check(second).verdict == Verdict.MATCH


def _without_key(world: World, intent: Intent, entry_id: str) -> Check:
    """A look in which the book shows that entry without its key, as some books do."""
    (claimed,) = _claim(world, intent)
    looked = checks.look(claimed)
    pages = tuple(
        replace(page, entries=tuple(replace(e, key=None) for e in page.entries if e.entry_id == entry_id))
        for page in looked.pages
    )
    return checks.act(claimed, replace(looked, pages=pages))


def test_the_verdict_is_about_what_the_book_says_now(world: World) -> None:
    intent = unknown(world, "order-78")
    add_entry(world, "order-78", idempotency_key=intent.idempotency_key, status="pending")
    (claimed,) = _claim(world, intent)
    looked = checks.look(claimed)
    assert checks.act(claimed, looked).verdict == Verdict.PENDING
    (claimed,) = _claim(world, intent)
    final = tuple(
        replace(page, entries=tuple(replace(e, state="final", amount_minor=4_850) for e in page.entries))
        for page in looked.pages
    )
    assert checks.act(claimed, replace(looked, pages=final)).verdict == Verdict.PARTIAL
    row = LedgerEntry.objects.get()
    assert (row.state, row.amount_minor) == ("final", 4_850)
    (claimed,) = _claim(world, intent)
    assert checks.act(claimed, looked).verdict != Verdict.PENDING, "a slower look brings nothing back to pending"
    assert LedgerEntry.objects.get().state == "final"


def test_said_not_to_be_sent_and_in_the_book_under_its_own_key_is_unknown_and_not_sent_again(world: World) -> None:
    """A downstream said "not processed" by mistake; a look that was under way finds the entry."""
    intent = world.propose("order-79")
    (sent,) = dispatch.claim(slots=1)
    world.sandbox.refund("order-79", key=intent.idempotency_key)
    outcomes.apply_outcome(
        sent.attempt_id,
        outcomes.Outcome(result=Result.NOT_SENT, reason="not_processed", phase="done"),
        actor=Actor.WORKER,
        actor_id="worker:test/1",
        closed_by=ClosedBy.ANSWER,
    )
    assert world.read(intent).status == Status.RECORDED
    looking = checks._claimed(world.read(intent), times.now(), by="checker:test/1")
    assert checks.act(looking, checks.look(looking)).verdict == Verdict.MATCH
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "contradicted")
    assert [r.code for r in world.review(intent).reasons.all()] == ["contradiction"]
    assert world.send() == 0, "it is not sent again"
    world.check(intent)
    found = world.read(intent)
    assert (found.status, len(world.booked(intent))) == ("confirmed", 1)
    assert history.faults(found) == []
