"""A caller that sends for itself, over HTTP, against a real payments service: lost answers, crashes, late words."""

from typing import Any

import pytest

from actions import history
from actions.models import Attempt, Intent
from actions.statuses import Status
from reconciliation.models import Verdict
from tests.api.calling import Api, claim, make_caller, new_key, problem, report
from tests.flow.world import World

AMOUNT = {"amount": "50.00", "currency": "EUR"}


@pytest.fixture
def caller(world: World) -> Api:
    world.kind.reports_trusted = True
    world.kind.save()
    return make_caller(world.kind)


@pytest.fixture
def doubted(world: World) -> Api:
    return make_caller(world.kind)


def recorded(api: Api, subject: str, **more: Any) -> Intent:
    return api.intent(subject=subject, executor="caller", **more)


def sound(world: World, intent: Intent) -> Intent:
    found = world.read(intent)
    assert history.faults(found) == []
    return found


def test_claim_send_report(world: World, caller: Api) -> None:
    intent = recorded(caller, "order-h1")
    key = claim(caller, intent.pk).json()["idempotency_key"]
    reply = world.sandbox.refund("order-h1", key=key)
    body = report(caller, intent.pk, "confirmed", external_id=reply.json["id"], answer=reply.json).json()
    assert (body["status"], body["external_id"], body["next_step"]) == ("confirmed", reply.json["id"], "done")
    assert len(world.booked(intent)) == 1
    sound(world, intent)


def test_whoever_crashed_before_sending_resumes_with_its_token_and_sends_once(world: World, caller: Api) -> None:
    """The 201 was lost, the claim's answer was lost; the process comes back with its request key and its token."""
    key = new_key()
    for _ in range(3):
        body = caller.propose(key=key, subject="order-h2", executor="caller", claim_token="t-1").json()
        assert body["attempt"]["may_send"]
    assert claim(caller, body["id"]).json()["attempt"]["may_send"]
    world.sandbox.refund("order-h2", key=body["idempotency_key"])
    report(caller, body["id"], "confirmed", external_id="re_1")
    assert (
        caller.propose(key=key, subject="order-h2", executor="caller", claim_token="t-1").json()["next_step"]
        == "done"
    )
    assert Attempt.objects.count() == 1


def test_the_process_dies_after_the_claim_and_the_ledger_tells(world: World, caller: Api) -> None:
    intent = recorded(caller, "order-h3")
    claim(caller, intent.pk)
    world.sandbox.refund("order-h3", key=intent.idempotency_key)
    world.later(60)
    problem(claim(caller, intent.pk), 409, "may_have_happened")
    world.sweep()
    found = world.read(intent)
    assert (found.status, found.status_reason) == ("unknown", "lease_over")
    assert world.check(intent).verdict == Verdict.MATCH
    assert sound(world, intent).status == Status.CONFIRMED


def test_a_renewed_lease_outlives_the_clock(world: World, caller: Api) -> None:
    intent = recorded(caller, "order-h4")
    claim(caller, intent.pk, lease_s=5)
    world.later(4)
    assert (
        caller.post(f"/intents/{intent.pk}/attempts/1/renew", {"claim_token": "t-1", "lease_s": 60}).status_code
        == 200
    )
    world.later(30)
    world.sweep()
    assert world.read(intent).status == Status.SUBMITTED
    assert claim(caller, intent.pk).json()["attempt"]["may_send"]
    world.later(40)
    world.sweep()
    assert world.read(intent).status == Status.UNKNOWN


def test_a_late_report_of_the_first_attempt_does_not_settle_the_second(world: World, caller: Api) -> None:
    intent = recorded(caller, "order-h5")
    claim(caller, intent.pk)
    world.later(60)
    world.sweep()
    assert report(caller, intent.pk, "not_sent").json()["status"] == "recorded", "late, and proven not sent"
    second = claim(caller, intent.pk, "t-2").json()
    assert (second["attempt"]["number"], second["idempotency_key"]) == (2, intent.idempotency_key)
    body = report(caller, intent.pk, "failed", attempt=1).json()
    assert (body["status"], body["attempt"]["number"]) == ("submitted", 2)
    problem(report(caller, intent.pk, "confirmed", attempt=2), 409, "foreign_report")
    assert sound(world, intent).status == Status.SUBMITTED
    assert report(caller, intent.pk, "confirmed", attempt=2, token="t-2").json()["status"] == "confirmed"


def test_an_untrusted_confirmed_is_looked_up_and_the_ledger_settles_it(world: World, doubted: Api) -> None:
    intent = recorded(doubted, "order-h6")
    claim(doubted, intent.pk)
    reply = world.sandbox.refund("order-h6", key=intent.idempotency_key)
    assert report(doubted, intent.pk, "confirmed", external_id="made-up").json()["status"] == "unknown"
    assert world.check(intent).verdict == Verdict.MATCH
    found = sound(world, intent)
    assert (found.status, found.settled_by, found.external_id) == ("confirmed", "ledger", reply.json["id"])


@pytest.mark.parametrize("lie", ["failed", "not_sent"])
def test_an_untrusted_no_about_what_the_ledger_shows_changes_nothing(world: World, doubted: Api, lie: str) -> None:
    intent = recorded(doubted, "order-h7")
    claim(doubted, intent.pk)
    world.sandbox.refund("order-h7", key=intent.idempotency_key)
    assert report(doubted, intent.pk, lie).json()["status"] == "unknown"
    problem(doubted.propose(subject="order-h7", **AMOUNT), 409, "unsettled_duplicate")
    world.check(intent)
    assert sound(world, intent).status == Status.CONFIRMED
    assert len(world.booked(intent)) == 1


def test_an_untrusted_confirmed_that_no_ledger_shows_is_for_a_person(world: World, doubted: Api) -> None:
    world.kind.absences_needed = 1
    world.kind.save()
    intent = recorded(doubted, "order-h8")
    claim(doubted, intent.pk)
    report(doubted, intent.pk, "confirmed", external_id="made-up")
    world.later(40)  # past the lease and the ledger's lag
    assert world.check(intent).verdict == Verdict.ABSENT
    assert sound(world, intent).status == Status.UNKNOWN
    review = world.review(intent)
    assert (review.reasons.get().code, review.recommendation) == ("contradiction", "fail")


def test_nothing_the_caller_carries_out_is_ever_sent_by_a_worker(world: World, caller: Api) -> None:
    intent = recorded(caller, "order-h9")
    assert world.send() == 0
    claim(caller, intent.pk)
    report(caller, intent.pk, "not_sent")
    assert world.send() == 0
    world.later(90_000)
    assert world.send() == 0
    world.sweep()
    assert world.posts(intent) == 0
    assert world.read(intent).status == Status.FAILED, "past its time; that nothing was sent is the caller's word"
