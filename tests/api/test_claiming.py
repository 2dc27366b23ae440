"""POST /intents/{id}/attempts and …/renew: who may send, and until when."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from threading import Barrier
from typing import Any

import pytest
import requests

from actions import callers, outcomes, times
from actions.models import Attempt, Intent
from actions.statuses import Status
from reconciliation.models import Choice, DecisionReason, ReasonCode, Review
from reconciliation.reviews import deciding, opening
from tests.api.calling import Api, attempts_of, claim, fields_of, make_api, make_caller, new_key, problem, report
from tests.factories import make_downstream, make_intent, make_kind, make_person

pytestmark = pytest.mark.django_db


@pytest.fixture
def api(db: None) -> Api:
    return make_caller(make_kind(reports_trusted=True))


def make(api: Api, **columns: Any) -> Intent:
    return make_intent(api.kind, api.agent, **({"executor": "caller"} | columns))


def seconds_left(body: dict[str, Any]) -> float:
    until = datetime.fromisoformat(body["attempt"]["lease_until"])
    return (until - times.now()).total_seconds()


def over(intent: Intent) -> None:
    """Its lease has run out, and no clock has noticed."""
    passed = times.now() - timedelta(milliseconds=1)
    Intent.objects.filter(pk=intent.pk).update(lease_until=passed)
    Attempt.objects.filter(intent=intent).update(lease_until=passed)


def renew(api: Api, intent: Intent, token: str = "t-1", number: int = 1, **fields: Any) -> Any:
    return api.post(f"{attempts_of(intent.pk)}/{number}/renew", {"claim_token": token} | fields)


def test_a_claim_may_send_with_the_intents_own_key(api: Api) -> None:
    intent = make(api)
    answer = claim(api, intent.pk)
    body = answer.json()
    assert (answer.status_code, answer["Location"]) == (201, f"/api/v1/intents/{intent.pk}")
    assert body["idempotency_key"] == intent.idempotency_key
    assert (body["attempt"]["number"], body["attempt"]["may_send"]) == (1, True)
    assert set(body) == {"attempt", "idempotency_key"}
    shown = api.get(f"/intents/{intent.pk}").json()
    assert (shown["status"], shown["next_step"], shown["attempt"]["may_send"]) == ("submitted", "report", False)


def test_a_lost_answer_is_had_again_with_the_same_token(api: Api) -> None:
    intent = make(api)
    first = claim(api, intent.pk)
    again = [claim(api, intent.pk) for _ in range(3)]
    assert [one.status_code for one in again] == [200, 200, 200]
    assert all(one.json() == first.json() for one in again)
    assert Attempt.objects.count() == 1


def test_another_token_is_told_that_it_may_have_happened(api: Api) -> None:
    intent = make(api)
    claim(api, intent.pk)
    body = problem(claim(api, intent.pk, "t-2"), 409, "may_have_happened")
    assert (body["intent"]["id"], body["next_step"]) == (str(intent.pk), "report")
    assert body["intent"]["attempt"]["may_send"] is False


def approve(intent_id: str) -> None:
    review = Review.objects.select_related("intent").get(intent=intent_id)
    deciding.decide(
        review.pk,
        person=make_person(),
        choice=Choice.APPROVE,
        reason=DecisionReason.JUSTIFIED,
        note="",
        seen=deciding.seen(review),
    )


def test_what_is_held_waits_for_a_person_and_can_be_claimed_once_it_is_approved(db: None) -> None:
    api = make_caller(make_kind(limits={"EUR": {"approve_above": 10_000}}))
    held = api.recorded(amount="200.00", executor="caller", claim_token="t-1")
    assert (held["status"], held["attempt"]) == ("held", None)
    body = problem(claim(api, held["id"]), 409, "not_approved")
    assert (body["next_step"], body["ask_again_at"] is not None) == ("wait_for_person", True)
    approve(held["id"])
    shown = api.get(f"/intents/{held['id']}").json()
    assert (shown["status"], shown["next_step"]) == ("recorded", "send")
    assert claim(api, held["id"]).status_code == 201


def test_what_landed_sends_is_not_claimed(api: Api) -> None:
    intent = make(api, executor="landed")
    problem(claim(api, intent.pk), 409, "not_executed_by_caller")
    problem(renew(api, intent), 409, "not_executed_by_caller")
    problem(report(api, intent.pk, "confirmed"), 409, "not_executed_by_caller")
    assert not Attempt.objects.exists()
    assert not intent.evidence.exists()


def test_it_takes_the_scope_report_and_propose_is_not_enough(api: Api) -> None:
    intent = make(api)
    proposer = make_api(api.kind)
    for path in (attempts_of(intent.pk), f"{attempts_of(intent.pk)}/1/renew", f"/intents/{intent.pk}/report"):
        assert problem(proposer.post(path, {}), 403, "scope_missing")["scope"] == "report"
    recorded = proposer.recorded(subject="o-9", executor="caller", claim_token="t-1")
    assert recorded["attempt"]["may_send"], "recording with a claim token takes propose"


def test_a_group_reads_but_only_its_own_agent_carries_out(db: None) -> None:
    owner = make_caller(group="support")
    colleague, stranger = make_caller(owner.kind, group="support"), make_caller(owner.kind)
    intent = make(owner)
    claim(owner, intent.pk)
    for call in (
        lambda api: claim(api, intent.pk),
        lambda api: renew(api, intent),
        lambda api: report(api, intent.pk, "confirmed"),
    ):
        problem(call(colleague), 403, "not_allowed")
        problem(call(stranger), 404, "not_found")
    intent.refresh_from_db()
    assert (intent.status, intent.evidence.count()) == ("submitted", 0)


@pytest.mark.parametrize(
    ("what", "status", "code"),
    [("agent", 403, "agent_paused"), ("kind", 409, "kind_paused"), ("downstream", 409, "downstream_paused")],
)
def test_while_something_is_paused_nobody_may_send(api: Api, what: str, status: int, code: str) -> None:
    intent, claimed = make(api), make(api)
    claim(api, claimed.pk)
    paused = {"agent": api.agent, "kind": api.kind, "downstream": api.kind.downstream}[what]
    type(paused).objects.filter(pk=paused.pk).update(paused=True)
    problem(claim(api, intent.pk), status, code)
    problem(renew(api, claimed), status, code)
    again = claim(api, claimed.pk)
    assert (again.status_code, again.json()["attempt"]["may_send"]) == (200, False)
    assert api.get(f"/intents/{intent.pk}").json()["next_step"] == "wait"
    assert report(api, claimed.pk, "confirmed").json()["status"] == "confirmed", "the truth is always taken"
    intent.refresh_from_db()
    assert intent.status == Status.RECORDED


def test_recording_with_a_token_while_the_downstream_is_paused_records_and_does_not_claim(api: Api) -> None:
    downstream = api.kind.downstream
    downstream.paused = True
    downstream.save()
    body = api.recorded(executor="caller", claim_token="t-1")
    assert (body["status"], body["attempt"], body["next_step"]) == ("recorded", None, "wait")
    downstream.paused = False
    downstream.save()
    assert claim(api, body["id"]).status_code == 201


@pytest.mark.parametrize(("asked", "given"), [(5, 5), (900, 900), (None, 30)])
def test_the_lease_is_what_was_asked_for_or_the_downstreams(api: Api, asked: int | None, given: int) -> None:
    body = claim(api, make(api).pk, lease_s=asked).json()
    assert seconds_left(body) == pytest.approx(given, abs=3)


@pytest.mark.parametrize("wrong", [4, 901, 0, -5, "30", 30.5, True, [30]])
def test_a_lease_that_is_none_is_refused(api: Api, wrong: Any) -> None:
    intent = make(api)
    assert fields_of(claim(api, intent.pk, lease_s=wrong)) == ["lease_s"]
    assert not Attempt.objects.exists()


@pytest.mark.parametrize("token", ["", "with space", "ü", "x" * 256, 7, None, True, "line\nbreak"])
def test_a_token_that_is_none_is_refused(api: Api, token: Any) -> None:
    assert fields_of(claim(api, make(api).pk, token)) == ["claim_token"]


def test_unknown_fields_and_bad_json_are_refused(api: Api) -> None:
    intent = make(api)
    assert fields_of(claim(api, intent.pk, lease=5)) == ["lease"]
    problem(api.post(attempts_of(intent.pk), b"{"), 400, "bad_json")
    assert fields_of(api.post(attempts_of(intent.pk), {})) == ["claim_token"]


def test_no_lease_outlives_send_before_or_the_time_for_which_the_key_is_deduped(db: None) -> None:
    kind = make_kind(make_downstream(dedupe_window_s=20), reports_trusted=True)
    api = make_caller(kind)
    soon = make(api, send_before=times.now() + timedelta(seconds=10))
    assert seconds_left(claim(api, soon.pk, lease_s=600).json()) <= 10
    assert seconds_left(renew(api, soon, lease_s=600).json()) <= 10
    later = make(api)
    assert seconds_left(claim(api, later.pk, lease_s=600).json()) <= 20
    assert seconds_left(renew(api, later, lease_s=600).json()) <= 20
    together = api.recorded(
        executor="caller", claim_token="t", send_before=(times.now() + timedelta(seconds=9)).isoformat()
    )
    assert seconds_left(together) <= 9


def test_past_its_time_it_is_not_claimed(api: Api) -> None:
    intent = make(api, send_before=times.now() - timedelta(seconds=1))
    problem(claim(api, intent.pk), 409, "past_send_before")


def test_on_a_disputed_subject_it_is_held_and_a_person_looks_first(api: Api) -> None:
    first = make(api, subject="order-7", guard_key=None)
    claim(api, first.pk)
    report(api, first.pk, "failed")
    second = make(api, subject="order-7/line-1")
    Intent.objects.filter(pk=first.pk).update(disputed=True)
    body = problem(claim(api, second.pk), 409, "not_approved")
    assert (body["next_step"], body["intent"]["status"]) == ("wait_for_person", "held")
    second.refresh_from_db()
    assert (second.status, second.attempts.count()) == ("held", 0)


def test_while_a_person_finds_out_the_token_does_not_let_send(api: Api) -> None:
    intent = make(api)
    claim(api, intent.pk)
    opening.open_for_outcome(Intent.objects.get(pk=intent.pk), ReasonCode.REQUESTED, now=times.now())
    problem(claim(api, intent.pk), 409, "may_have_happened")


def test_a_replay_with_the_same_token_may_send_until_the_lease_is_over(api: Api) -> None:
    """Crash and resume: the 201 was lost, or the process died before it sent."""
    key = new_key()
    first = api.propose(key=key, executor="caller", claim_token="t-1").json()
    assert (first["next_step"], first["attempt"]["may_send"]) == ("send", True)
    again = api.propose(key=key, executor="caller", claim_token="t-1").json()
    other = api.propose(key=key, executor="caller", claim_token="t-2").json()
    assert (again["next_step"], again["attempt"]["may_send"]) == ("send", True)
    assert (other["next_step"], other["attempt"]["may_send"]) == ("report", False)
    assert claim(api, first["id"]).json()["attempt"]["may_send"] is True
    over(Intent.objects.get(pk=first["id"]))
    late = api.propose(key=key, executor="caller", claim_token="t-1").json()
    assert (late["next_step"], late["attempt"]["may_send"]) == ("report", False)
    problem(claim(api, first["id"]), 409, "may_have_happened")


# --- renewing


def test_renewing_gives_more_time_to_intent_and_attempt_alike(api: Api) -> None:
    intent = make(api)
    claim(api, intent.pk)
    answer = renew(api, intent, lease_s=300)
    assert answer.status_code == 200
    assert seconds_left(answer.json()) == pytest.approx(300, abs=3)
    intent.refresh_from_db()
    assert (
        intent.lease_until
        == intent.attempts.get().lease_until
        == datetime.fromisoformat(answer.json()["attempt"]["lease_until"])
    )
    assert intent.version == 2, "more time is no change of status"


def test_renewing_never_takes_time_away(api: Api) -> None:
    intent = make(api)
    claim(api, intent.pk, lease_s=300)
    assert seconds_left(renew(api, intent, lease_s=5).json()) > 200


def test_only_the_open_attempts_token_renews_and_only_before_the_lease_is_over(api: Api) -> None:
    intent = make(api)
    problem(renew(api, intent), 404, "not_found")
    claim(api, intent.pk)
    problem(renew(api, intent, "t-2"), 409, "may_have_happened")
    problem(renew(api, intent, number=2), 404, "not_found")
    over(intent)
    problem(renew(api, intent), 409, "lease_over")
    outcomes.expire_lease(intent.pk, now=times.now(), clock_id="clock:t")
    problem(renew(api, intent), 409, "lease_over")
    other = make(api)
    claim(api, other.pk)
    report(api, other.pk, "not_sent")
    problem(renew(api, other), 409, "lease_over")
    claim(api, other.pk, "t-2")
    problem(renew(api, other), 409, "lease_over")
    assert renew(api, other, "t-2", number=2).status_code == 200


# --- at once


@pytest.mark.django_db(transaction=True)
def test_of_many_processes_that_claim_at_once_one_may_send(live: str, db: None) -> None:
    api = make_caller()
    intent = make(api)
    start = Barrier(12)

    def one(number: int) -> requests.Response:
        start.wait(30)
        return requests.post(
            f"{live}/api/v1/intents/{intent.pk}/attempts",
            json={"claim_token": f"process-{number}"},
            headers=api.headers(),
            timeout=60,
        )

    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(one, range(12)))
    assert sorted(answer.status_code for answer in answers) == [201] + [409] * 11
    assert {answer.json().get("code") for answer in answers if answer.status_code == 409} == {"may_have_happened"}
    assert Attempt.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_a_renewal_and_the_clock_at_once_never_leave_a_lease_on_what_is_unknown(db: None) -> None:
    from actions import sweep
    from actions.errors import LeaseOver
    from tests.core.steps import race

    for _ in range(5):
        intent = make_intent(make_kind(), executor="caller")
        callers.claim(intent.pk, claim_token="t", actor_id="agent:1")
        soon = times.now() + timedelta(milliseconds=30)
        Intent.objects.filter(pk=intent.pk).update(lease_until=soon)
        Attempt.objects.filter(intent=intent).update(lease_until=soon)

        def act(index: int, intent: Intent = intent) -> object:
            if index % 2:
                return sweep.sweep()
            return callers.renew(intent.pk, number=1, claim_token="t", lease_s=60)

        results = race(4, act)
        assert all(isinstance(found, Attempt | LeaseOver | sweep.Swept) for found in results), results
        intent.refresh_from_db()
        renewed = any(isinstance(found, Attempt) for found in results)
        assert (intent.status == "submitted") == (intent.lease_until is not None)
        if intent.status == "unknown":
            assert not renewed
