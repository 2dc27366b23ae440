"""What a reviewer and an attacker found, each as it was found."""

from datetime import timedelta

import pytest

from actions import callers, dispatch, holding, policy, replays, stops, subjects, times, transitions
from actions import claiming as claims
from actions.errors import BadDecision
from actions.models import Downstream, Intent, Kind, Result
from actions.reasons import Reason
from actions.statuses import Actor, Status
from reconciliation import orphans
from reconciliation.models import Choice, DecisionReason, Incident, LedgerEntry, Match, MatchRole, ReasonCode, Review
from reconciliation.reviews import claiming
from reconciliation.reviews import orphans as deciding_orphans
from tests.factories import make_intent, make_person
from tests.flow.test_breakers import SILENT, answer, propose
from tests.flow.test_deciding import decide
from tests.flow.test_finding_the_truth import add_entry, unknown
from tests.flow.test_incidents import case, outage
from tests.flow.world import World


def known(world: World, intent: Intent, entry_id: str, **columns: object) -> LedgerEntry:
    """An entry that somebody told of, which the book does not show."""
    found = {
        "downstream": world.downstream,
        "entry_id": entry_id,
        "role": "effect",
        "state": "pending",
        "key": intent.idempotency_key,
        "subject": intent.subject,
        "amount_minor": 5_000,
        "currency": "EUR",
        "first_seen_at": times.now(),
        "last_seen_at": times.now(),
    }
    return LedgerEntry.objects.create(**(found | columns))


def test_a_failed_entry_fails_nothing_while_a_live_one_under_its_key_is_on_record(world: World) -> None:
    intent = unknown(world, "order-1")
    known(world, intent, "Y")
    world.later(5)
    add_entry(
        world, "order-1", amount_minor=5_000, currency="EUR", status="failed", idempotency_key=intent.idempotency_key
    )
    world.check(intent)
    assert world.read(intent).status == Status.UNKNOWN
    assert world.review(intent).reasons.get().code == ReasonCode.AMBIGUOUS


def test_what_may_have_been_sent_blocks_although_it_holds_no_guard(world: World) -> None:
    """Its waiver was taken from it when it was held, and then it turned out to have been sent."""
    intent = make_intent(world.kind, subject="order-2", guard_key=None)
    Intent.objects.filter(pk=intent.pk).update(status=Status.UNKNOWN)
    assert [one.pk for one in subjects.blocking(world.kind.pk, "order-2/line-1")] == [intent.pk]


def test_what_a_person_sends_again_is_not_asked_about_before_a_worker_had_its_turn(world: World) -> None:
    Downstream.objects.update(look_up="none", dedupe_window_s=86_400)
    Kind.objects.update(send_before_s=None)
    world.sandbox.order_fault("order-3", "lose_response")
    intent = world.propose("order-3")
    world.send()
    world.later(4_000)
    decide(world.review(intent), make_person(), Choice.SEND_AGAIN)
    for _ in range(3):
        world.sweep()
    assert Review.objects.filter(intent=intent, closed_at=None).count() == 0
    assert world.send() == 1
    assert world.read(intent).status == Status.CONFIRMED


def test_a_look_that_comes_before_the_worker_does_not_take_it_back_either(world: World) -> None:
    Kind.objects.update(review_after_s=0, send_before_s=None)
    intent = unknown(world, "order-4")
    world.check(intent)
    decide(world.review(intent), make_person(), Choice.SEND_AGAIN)
    world.check(intent)
    assert world.read(intent).next_attempt_at is not None
    assert world.send() == 1


def test_an_outage_hides_no_case_past_its_time_and_none_that_only_people_can_find_out_about(world: World) -> None:
    Downstream.objects.update(breaker_after=3)
    (intent,) = propose(world, 1)
    answer(1, SILENT)
    review = case(world.read(intent), ReasonCode.STILL_UNKNOWN)
    outage(world)
    world.sweep()
    review.refresh_from_db()
    assert review.incident is not None
    world.later(14_400 + 60)
    world.sweep()
    world.sweep()
    review.refresh_from_db()
    assert review.incident is None, "due, and the outage goes on: somebody decides it without the books"
    Downstream.objects.update(look_up="none")
    Review.objects.update(due_at=times.now() + timedelta(days=1))
    world.sweep()
    review.refresh_from_db()
    assert review.incident is None
    assert Incident.objects.filter(closed_at=None).exists()


def test_looks_that_somebody_asked_for_use_up_none_of_those_that_its_kind_wants(world: World) -> None:
    intent = unknown(world, "order-5")
    for _ in range(2):
        world.later(5)
        world.check(intent)
    settled_at = world.read(intent).settled_at
    assert settled_at is not None
    for _ in range(4):
        world.later(60)
        world.check(intent)
    assert world.read(intent).next_check_at is not None
    world.later(3_600)
    world.check(intent)
    planned = world.read(intent).next_check_at
    assert planned is not None
    assert abs((planned - settled_at).total_seconds() - 86_400) < 5, "24 hours after it failed"


def test_a_key_is_not_sent_again_while_an_attempt_is_open_and_keeps_nobody_else_from_being_sent(world: World) -> None:
    Downstream.objects.update(look_up="none", dedupe_window_s=86_400)
    intent = world.propose("order-6")
    (claimed,) = dispatch.claim(slots=1)
    transitions.apply(
        intent.pk,
        expected=Status.SUBMITTED,
        to=Status.UNKNOWN,
        actor=Actor.CHECKER,
        actor_id="checker",
        reason=Reason.IN_REVIEW,
        next_attempt_at=times.now(),
    )
    other = world.propose("order-7")
    world.send()
    assert world.read(other).status == Status.CONFIRMED
    assert world.posts(intent) == 0
    dispatch.save(claimed, dispatch.send(claimed))
    assert (world.read(intent).status, world.posts(intent)) == (Status.CONFIRMED, 1)


def test_a_row_that_can_not_be_claimed_costs_itself_only(world: World, monkeypatch: pytest.MonkeyPatch) -> None:

    bad, good = world.propose("order-8"), world.propose("order-9")
    real = claims._submit

    def submit(intent: Intent, *args: object) -> object:
        if intent.pk == bad.pk:
            raise ValueError("no two rows are alike")
        return real(intent, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(claims, "_submit", submit)
    world.send()
    assert world.read(good).status == Status.CONFIRMED
    assert (world.read(bad).status, world.read(bad).attempts.count()) == (Status.RECORDED, 0)


def test_a_promise_that_was_withdrawn_is_withdrawn_for_what_was_unknown_then(world: World) -> None:
    Kind.objects.update(replay="in_window", replay_schedule=[5])
    Downstream.objects.update(look_up="none", dedupe_window_s=86_400)
    world.sandbox.order_fault("order-10", "lose_response")
    intent = world.propose("order-10")
    world.send()
    Downstream.objects.update(dedupes=False, dedupe_window_s=None)
    world.sweep()
    Downstream.objects.update(dedupes=True, dedupe_window_s=86_400)
    world.later(10)
    assert world.send() == 0
    assert world.posts(intent) == 1


@pytest.mark.parametrize(
    ("dedupes", "window_s", "hours"), [(True, 86_400, 24), (True, 3_600, 1), (True, 10**7, 24), (False, None, None)]
)
def test_until_when_a_key_is_safe_knows_of_what_is_declared_now(
    world: World, dedupes: bool, window_s: int | None, hours: int | None
) -> None:

    intent = unknown(world, "order-11")
    first = intent.first_maybe_sent_at
    until = replays.safe_until(policy.read(intent.policy.text), first, dedupes=dedupes, window_s=window_s)
    assert first is not None
    assert until == (None if hours is None else first + timedelta(hours=hours))


@pytest.mark.parametrize("spelt", ["c\u20115", "c\u20105", "c\u22125", "C \u2013 5", "\uff43\ufe635"])
def test_no_dash_gets_past_a_stop(spelt: str) -> None:
    assert stops.fold(spelt) == stops.fold("c-5")
    assert stops.fold("order-1\u2215x") == stops.fold("order-1\u2044x") == stops.fold("order-1/x")


def test_what_is_stopped_as_it_is_claimed_is_given_back_unsent(world: World) -> None:
    intent = world.propose("order-12")
    real, person = dispatch.claim, "person:1"

    def claim_and_stop(*, slots: int) -> list[dispatch.Claimed]:
        found = real(slots=slots)
        if found:
            stops.place("subject", "order-12", reason="fraud", actor_id=person)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dispatch, "claim", claim_and_stop)
        world.send()
    found = world.read(intent)
    assert (found.status, found.status_reason, world.posts(intent)) == ("held", "held_on_stop", 0)
    assert holding.OBJECTED not in found.hold_reasons


def orphan(world: World, entry: LedgerEntry) -> Review:
    LedgerEntry.objects.filter(pk=entry.pk).update(explain_at=times.now())
    world.later(1_000)
    assert orphans.open_case(entry.pk)
    return Review.objects.get(entry=entry, closed_at=None)


def test_an_entry_that_settled_an_intent_meanwhile_is_not_taken_from_it_by_a_link(world: World) -> None:
    """One entry settles one intent."""
    one, other = unknown(world, "order-13"), unknown(world, "order-14")
    entry = known(world, one, "E", key="", state="final")
    review = orphan(world, entry)
    person = make_person()

    claiming.claim(review.pk, person=person)
    seen = deciding_orphans.seen(entry, world.read(other))
    Match.objects.create(
        entry=entry, intent=one, role=MatchRole.SETTLES, entry_state="final", by="checker", at=times.now()
    )
    with pytest.raises(BadDecision):
        deciding_orphans.decide(
            review.pk,
            person=person,
            choice=Choice.LINK,
            reason=DecisionReason.LEDGER,
            note="",
            seen=seen,
            named=str(other.pk),
        )
    assert Match.objects.get(entry=entry, released_at=None).intent == one
    assert world.read(other).status == Status.UNKNOWN


def test_what_its_caller_says_is_done_and_the_book_does_not_show_is_for_a_person(world: World) -> None:
    Kind.objects.update(reports_trusted=False)
    intent = make_intent(world.kind, subject="order-20", executor="caller")
    attempt = callers.take(intent.pk, claim_token="mine", actor_id="agent:1").attempt
    said = callers.reported(Result.CONFIRMED, external_id="re_1")
    content = {"outcome": "confirmed", "external_id": "re_1", "answer": {}}
    callers.report(
        intent.pk, outcome=said, content=content, actor_id="agent:1", number=1, claim_token="mine", trusted=False
    )
    assert attempt.number == 1
    for _ in range(2):
        world.later(60)
        world.check(intent)
    assert world.read(intent).status == Status.UNKNOWN
    review = world.review(intent)
    assert (review.reasons.get().code, review.recommendation) == (ReasonCode.CONTRADICTION, Choice.FAIL)
