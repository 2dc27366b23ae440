"""People decide: what they saw, what is true at that moment, and what follows."""

import threading
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from actions import history
from actions.errors import BadDecision, LandedError, PersonNotAllowed, ReviewClosed, ReviewHeld, SeenIsStale
from actions.models import Intent
from actions.statuses import Status
from reconciliation.models import Choice, Decision, DecisionReason, LedgerEntry, Match, Review
from reconciliation.reviews import claiming, deciding, pending
from tests.factories import make_person
from tests.flow.world import World


def decide(review: Review, person: User, choice: Choice, **more: Any) -> deciding.Decided:
    """Decides as the page would: with what it shows now, and the entry that the newest check names."""
    review = Review.objects.select_related("intent").get(pk=review.pk)
    given: dict[str, Any] = {"reason": DecisionReason.LEDGER, "note": "", "seen": deciding.seen(review)}
    if choice is Choice.CONFIRM and "entry_id" not in more and review.intent is not None:
        newest = review.intent.checks.order_by("-position").first()
        given["entry_id"] = newest.grounds_data["entry"] if newest else None
    return deciding.decide(review.pk, person=person, choice=choice, **(given | more))


def high_value(world: World, subject: str = "order-10", amount: str = "640.00") -> tuple[Intent, Review]:
    """An intent above the review limit whose response was lost and whose entry was found."""
    world.sandbox.order_fault(subject, "lose_response")
    intent = world.propose(subject, amount)
    world.send()
    world.check(intent)
    return world.read(intent), world.review(intent)


def test_above_the_limit_what_was_found_goes_to_a_person_with_a_recommendation(world: World) -> None:
    intent, review = high_value(world)
    assert intent.status == Status.UNKNOWN
    assert [r.code for r in review.reasons.all()] == ["high_value"]
    assert review.recommendation == Choice.CONFIRM
    assert review.grounds.startswith("It looks as if it happened.")


def test_a_reviewer_confirms_and_the_entry_is_tied_to_the_intent(world: World) -> None:
    intent, review = high_value(world)
    person = make_person()
    assert decide(review, person, Choice.CONFIRM).state == "effective"
    intent = world.read(intent)
    assert (intent.status, intent.settled_by, intent.settled_amount) == ("confirmed", "decision", "640.00")
    assert Match.objects.get(intent=intent).entry.entry_id == world.booked(intent)[0]["id"]
    review.refresh_from_db()
    assert review.closed_how == "decision"
    assert history.faults(intent) == []
    last = intent.transitions.last()
    assert last is not None
    assert (last.actor, last.actor_id) == ("reviewer", f"person:{person.pk}")


def test_failing_against_the_recommendation_needs_a_note_and_a_supervisor(world: World) -> None:
    intent, review = high_value(world)
    with pytest.raises(BadDecision, match="supervisor"):
        decide(review, make_person(), Choice.FAIL, note="I think not")
    boss = make_person("supervisor")
    claiming.release(review.pk, person=Review.objects.get(pk=review.pk).holder or boss)
    with pytest.raises(BadDecision, match="note"):
        decide(review, boss, Choice.FAIL)
    assert world.read(intent).status == Status.UNKNOWN
    decide(review, boss, Choice.FAIL, note="The provider reversed it by phone.")
    assert world.read(intent).status == Status.FAILED


def test_a_ledger_that_changed_since_the_page_was_opened_decides_nothing(world: World) -> None:
    intent, review = high_value(world)
    saw = deciding.seen(Review.objects.select_related("intent").get(pk=review.pk))
    (entry,) = world.booked(intent)
    world.sandbox.call(
        "POST",
        "/_control/entries",
        {
            "order": intent.subject,
            "amount_minor": 64_000,
            "currency": "EUR",
            "type": "refund",
            "status": "succeeded",
            "idempotency_key": intent.idempotency_key,
        },
    )
    row = LedgerEntry.objects.get(entry_id=entry["id"])
    with pytest.raises(SeenIsStale):
        decide(review, make_person(), Choice.CONFIRM, seen=saw, entry_id=row.pk)
    assert world.read(intent).status == Status.UNKNOWN
    review = world.review(intent)
    assert review.verdict == "duplicate", "the new facts are stored and shown"
    assert Decision.objects.count() == 0


def test_when_the_ledger_is_away_outside_evidence_is_asked_for(world: World) -> None:
    intent, review = high_value(world)
    world.sandbox.order_fault(intent.subject, "ledger_error", times=9)
    person = make_person()
    with pytest.raises(BadDecision, match="source and reference"):
        decide(review, person, Choice.CONFIRM)
    decide(review, person, Choice.CONFIRM, outside="Provider's support, ticket 4711", entry_id=None)
    intent = world.read(intent)
    assert intent.status == Status.CONFIRMED
    assert intent.evidence.filter(kind="outside").get().text == "Provider's support, ticket 4711"


def test_above_the_second_limit_two_different_people_agree(world: World) -> None:
    intent, review = high_value(world, amount="6000.00")
    first, second = make_person(), make_person()
    assert decide(review, first, Choice.CONFIRM).state == "second_person"
    assert world.read(intent).status == Status.UNKNOWN
    with pytest.raises(BadDecision, match="different person"):
        decide(review, first, Choice.CONFIRM)
    assert decide(review, second, Choice.CONFIRM).state == "effective"
    assert world.read(intent).status == Status.CONFIRMED
    assert history.faults(world.read(intent)) == []


def test_a_second_vote_for_something_else_voids_the_first(world: World) -> None:
    intent, review = high_value(world, amount="6000.00")
    decide(review, make_person(), Choice.CONFIRM)
    boss = make_person("supervisor")
    assert decide(review, boss, Choice.FAIL, note="no").state == "second_person"
    assert world.read(intent).status == Status.UNKNOWN
    assert Decision.objects.filter(choice=Choice.VOID).count() == 1


def test_held_above_the_approval_limit_is_sent_only_after_two_people_approved(world: World) -> None:
    intent = world.propose("order-11", "10000.01")
    assert intent.status == Status.HELD
    assert world.send() == 0
    review = world.review(intent)
    assert decide(review, make_person(), Choice.APPROVE, reason=DecisionReason.JUSTIFIED).state == "second_person"
    assert world.send() == 0
    decide(review, make_person(), Choice.APPROVE, reason=DecisionReason.JUSTIFIED)
    world.send()
    assert world.read(intent).status == Status.CONFIRMED
    assert world.posts(intent) == 1


def test_a_rejected_one_is_cancelled_and_never_sent(world: World) -> None:
    intent = world.propose("order-12", "10000.01")
    decide(world.review(intent), make_person(), Choice.REJECT, reason=DecisionReason.NOT_JUSTIFIED)
    intent = world.read(intent)
    assert (intent.status, intent.status_reason, intent.guard_key) == ("cancelled", "rejected", None)
    assert world.send() == 0
    assert world.posts(intent) == 0


def test_the_machine_was_faster_and_the_person_is_told(world: World) -> None:
    world.sandbox.order_fault("order-13", "lose_response")
    world.sandbox.configure(ledger_lag_s=60)
    intent = world.propose("order-13")
    world.send()
    world.later(700)
    world.check(intent)
    review = world.review(intent)
    assert [r.code for r in review.reasons.all()] == ["still_unknown"]
    saw = deciding.seen(Review.objects.select_related("intent").get(pk=review.pk))
    world.sandbox.configure(ledger_lag_s=0)
    # The look at the moment of deciding finds the entry; under the limit that settles it by machine.
    with pytest.raises(LandedError) as told:
        decide(review, make_person("supervisor"), Choice.FAIL, seen=saw)
    assert isinstance(told.value, ReviewClosed | SeenIsStale)
    intent = world.read(intent)
    assert (intent.status, intent.settled_by) == ("confirmed", "ledger")
    review.refresh_from_db()
    assert review.closed_how == "resolved_by_evidence"
    with pytest.raises(ReviewClosed):
        decide(review, make_person("supervisor"), Choice.FAIL, seen=saw)


def test_somebody_else_holds_the_case(world: World) -> None:
    _, review = high_value(world)
    mara, jon = make_person(), make_person()
    claiming.claim(review.pk, person=mara)
    with pytest.raises(ReviewHeld):
        decide(review, jon, Choice.CONFIRM)


def test_an_auditor_decides_nothing(world: World) -> None:
    _, review = high_value(world)
    with pytest.raises(PersonNotAllowed):
        decide(review, make_person("auditor"), Choice.CONFIRM)


def test_of_two_racing_decisions_exactly_one_wins(world: World) -> None:
    intent, review = high_value(world)
    saw = deciding.seen(Review.objects.select_related("intent").get(pk=review.pk))
    entry = LedgerEntry.objects.get()
    people = [make_person("supervisor") for _ in range(6)]
    results: list[object] = []

    def race(person: User) -> None:
        try:
            results.append(decide(review, person, Choice.CONFIRM, seen=saw, entry_id=entry.pk))
        except LandedError as told:
            results.append(told)
        finally:
            connection.close()

    threads = [threading.Thread(target=race, args=[person]) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 6
    assert sum(isinstance(result, deciding.Decided) for result in results) == 1
    assert world.read(intent).transitions.filter(to_status="confirmed").count() == 1


def test_with_an_undo_window_nothing_changes_before_it_ends(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    intent, review = high_value(world)
    person = make_person()
    decided = decide(review, person, Choice.CONFIRM)
    assert decided.state == "undo_window"
    assert world.sweep() == 0
    assert world.read(intent).status == Status.UNKNOWN
    pending.undo(decided.decision.pk, person=person)
    assert pending.waiting().count() == 0
    decide(review, person, Choice.CONFIRM)
    world.later(16)
    world.sweep()
    assert world.read(intent).status == Status.CONFIRMED


def test_new_evidence_in_the_undo_window_voids_the_decision(world: World, settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    world.sandbox.order_fault("order-14", "lose_response")
    world.sandbox.configure(ledger_lag_s=60)
    intent = world.propose("order-14")
    world.send()
    world.later(700)
    world.check(intent)
    decided = decide(world.review(intent), make_person("supervisor"), Choice.FAIL)
    assert decided.state == "undo_window"
    world.sandbox.configure(ledger_lag_s=0)
    world.check(intent)
    assert world.read(intent).status == Status.CONFIRMED
    world.later(16)
    world.sweep()
    intent = world.read(intent)
    assert (intent.status, intent.settled_by) == ("confirmed", "ledger")
    assert Decision.objects.filter(choice=Choice.VOID, about=decided.decision).count() == 1
    assert history.faults(intent) == []
