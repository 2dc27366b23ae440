"""POST /intents/{id}/report: what a caller says about its attempt, and what may follow from it."""

from typing import Any

import pytest

from actions import history, outcomes, services, times
from actions.models import Attempt, Intent
from actions.statuses import Status
from reconciliation.models import Review
from tests.api.calling import Api, attempts_of, claim, fields_of, make_caller, problem, report
from tests.factories import make_downstream, make_intent, make_kind

pytestmark = pytest.mark.django_db

OUTCOMES = ["confirmed", "failed", "unknown", "not_sent"]


@pytest.fixture
def trusted(db: None) -> Api:
    return make_caller(make_kind(reports_trusted=True))


@pytest.fixture
def doubted(db: None) -> Api:
    """Reports aren't trusted, and the books can be looked into."""
    return make_caller(make_kind(reports_trusted=False))


@pytest.fixture
def blind(db: None) -> Api:
    """Reports aren't trusted, and there is no book to look into."""
    return make_caller(make_kind(make_downstream(look_up="none", absence_conclusive=False)))


def claimed(api: Api, token: str = "t-1") -> Intent:
    intent = make_intent(api.kind, api.agent, executor="caller")
    assert claim(api, intent.pk, token).status_code == 201
    return intent


def read(intent: Intent) -> Intent:
    found = Intent.objects.get(pk=intent.pk)
    assert history.faults(found) == []
    return found


def review_of(intent: Intent) -> Review | None:
    return Review.objects.filter(intent=intent, closed_at__isnull=True).first()


def expire(intent: Intent) -> None:
    outcomes.expire_lease(intent.pk, now=times.now(), clock_id="clock:t")


@pytest.mark.parametrize(
    ("outcome", "status"),
    [("confirmed", "confirmed"), ("failed", "failed"), ("unknown", "unknown"), ("not_sent", "recorded")],
)
def test_where_reports_are_trusted_a_definite_one_settles(trusted: Api, outcome: str, status: str) -> None:
    intent = claimed(trusted)
    answer = report(trusted, intent.pk, outcome, external_id="re_1" if outcome == "confirmed" else None)
    assert (answer.status_code, answer.json()["status"]) == (200, status)
    found = read(intent)
    assert found.external_id == ("re_1" if outcome == "confirmed" else "")
    assert found.attempts.get().closed_by == "report"
    assert '"outcome":"' + outcome in found.evidence.get().text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_same_report_again_changes_nothing(trusted: Api, outcome: str) -> None:
    intent = claimed(trusted)
    first = report(trusted, intent.pk, outcome).json()
    rows = Intent.objects.values().get(pk=intent.pk)
    for _ in range(3):
        again = report(trusted, intent.pk, outcome)
        assert again.status_code == 200
        assert {**again.json(), "ask_again_at": 0} == {**first, "ask_again_at": 0}
    assert Intent.objects.values().get(pk=intent.pk) == rows
    assert intent.evidence.count() == 1


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_an_untrusted_report_leads_to_a_look_and_not_to_an_end(doubted: Api, outcome: str) -> None:
    intent = claimed(doubted)
    body = report(doubted, intent.pk, outcome, external_id="re_1").json()
    assert (body["status"], body["settled"], body["external_id"], body["next_step"]) == (
        "unknown",
        False,
        None,
        "wait",
    )
    assert body["status_reason"] == ("reported_unknown" if outcome == "unknown" else "report_unverified")
    found = read(intent)
    assert found.next_check_at is not None
    assert found.next_check_at <= times.now(), "soon"
    attempt = found.attempts.get()
    assert (attempt.result, attempt.harmless) == ("no_answer", False), "an untrusted word proves nothing"
    assert "re_1" in found.evidence.get().text


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_without_a_book_an_untrusted_report_leads_to_a_person(blind: Api, outcome: str) -> None:
    intent = claimed(blind)
    body = report(blind, intent.pk, outcome).json()
    assert (body["status"], body["next_step"], body["review"]["for"]) == ("unknown", "wait_for_person", "outcome")
    assert read(intent).settled_by == ""


def test_an_untrusted_not_sent_does_not_open_the_way_for_a_second_sending(doubted: Api) -> None:
    intent = claimed(doubted)
    report(doubted, intent.pk, "not_sent")
    for token in ("t-1", "t-2"):
        problem(claim(doubted, intent.pk, token), 409, "may_have_happened")
    assert Attempt.objects.count() == 1


def test_the_application_itself_is_trusted_whatever_the_kind_says(doubted: Api) -> None:
    intent = claimed(doubted)
    assert services.mark_confirmed(intent.pk, {"id": "re_1"}).status == Status.CONFIRMED


def test_a_late_report_after_the_lease_still_counts(trusted: Api) -> None:
    intent = claimed(trusted)
    expire(intent)
    assert read(intent).status == Status.UNKNOWN
    assert report(trusted, intent.pk, "confirmed", external_id="re_1").json()["status"] == "confirmed"


def test_a_late_untrusted_one_is_evidence_and_a_look(doubted: Api) -> None:
    intent = claimed(doubted)
    expire(intent)
    body = report(doubted, intent.pk, "failed").json()
    assert body["status"] == "unknown"
    found = read(intent)
    assert found.next_check_at is not None
    assert found.next_check_at <= times.now()
    assert not found.attempts.get().closed_by_itself, "its word doesn't let a machine conclude from absence"


def test_a_report_about_the_first_attempt_does_not_settle_the_second(trusted: Api) -> None:
    intent = claimed(trusted)
    report(trusted, intent.pk, "not_sent")
    claim(trusted, intent.pk, "t-2")
    assert report(trusted, intent.pk, "failed", attempt=1).json()["status"] == "submitted"
    assert intent.attempts.get(number=2).closed_at is None
    assert report(trusted, intent.pk, "confirmed", attempt=2, token="t-2").json()["status"] == "confirmed"


def test_when_the_first_attempt_happened_after_all_the_second_is_not_sent_on_top_of_it(trusted: Api) -> None:
    intent = claimed(trusted)
    report(trusted, intent.pk, "not_sent")
    assert claim(trusted, intent.pk, "t-2").json()["attempt"]["may_send"]
    body = report(trusted, intent.pk, "confirmed", attempt=1, external_id="re_1").json()
    assert (body["status"], body["status_reason"]) == ("unknown", "earlier_attempt_open")
    problem(claim(trusted, intent.pk, "t-2"), 409, "may_have_happened")
    found = read(intent)
    assert found.next_check_at is not None
    assert report(trusted, intent.pk, "confirmed", attempt=2, token="t-2").json()["status"] == "confirmed"


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_another_tokens_report_is_kept_and_speaks_for_nothing(trusted: Api, outcome: str) -> None:
    intent = claimed(trusted)
    body = problem(report(trusted, intent.pk, outcome, token="t-2"), 409, "foreign_report")
    assert body["intent"]["status"] == "submitted"
    found = read(intent)
    assert found.attempts.get().closed_at is None
    assert "another token" in found.evidence.get().text
    assert (found.next_check_at is not None) == (outcome == "confirmed"), "who may not send says that it did: look"
    assert report(trusted, intent.pk, "confirmed").json()["status"] == "confirmed"


def test_a_report_on_an_attempt_that_is_not_there_is_kept_too(trusted: Api) -> None:
    intent = make_intent(trusted.kind, trusted.agent, executor="caller")
    problem(report(trusted, intent.pk, "confirmed"), 404, "not_found")
    assert (read(intent).status, intent.evidence.count()) == ("recorded", 1)


@pytest.mark.parametrize(
    ("first", "then"), [("failed", "confirmed"), ("confirmed", "failed"), ("confirmed", "not_sent")]
)
def test_a_report_that_contradicts_is_kept_and_reviewed(trusted: Api, first: str, then: str) -> None:
    intent = claimed(trusted)
    settled = report(trusted, intent.pk, first).json()["status"]
    body = report(trusted, intent.pk, then).json()
    assert (body["status"], body["disputed"], body["next_step"]) == (settled, True, "wait_for_person")
    assert intent.evidence.count() == 2
    review = review_of(intent)
    assert review is not None
    report(trusted, intent.pk, then)
    assert intent.evidence.count() == 2


def test_an_untrusted_word_against_what_is_settled_is_reviewed_and_settles_nothing(doubted: Api) -> None:
    intent = claimed(doubted)
    outcomes.apply_outcome(
        intent.attempts.get().pk,
        outcomes.Outcome(result=outcomes.Result.REFUSED, reason="reported"),
        actor=outcomes.Actor.CALLER,
        actor_id="agent:1",
        closed_by=outcomes.ClosedBy.REPORT,
    )
    body = report(doubted, intent.pk, "confirmed").json()
    assert (body["status"], body["disputed"]) == ("failed", True)


def test_confirmed_under_another_id_may_be_a_second_effect(trusted: Api) -> None:
    intent = claimed(trusted)
    report(trusted, intent.pk, "confirmed", external_id="re_1")
    body = report(trusted, intent.pk, "confirmed", external_id="re_2").json()
    assert (body["status"], body["disputed"], body["external_id"]) == ("confirmed", True, "re_1")


def test_not_sent_that_happened_after_all_is_not_claimed_again(trusted: Api) -> None:
    intent = claimed(trusted)
    report(trusted, intent.pk, "not_sent")
    body = report(trusted, intent.pk, "confirmed").json()
    assert (body["status"], body["next_step"]) == ("unknown", "wait_for_person")
    problem(claim(trusted, intent.pk, "t-2"), 409, "may_have_happened")


def test_amounts_inside_the_answer_settle_nothing(trusted: Api) -> None:
    intent = claimed(trusted)
    answer = {"id": "re_1", "amount_minor": 1, "amount": 0.01, "currency": "USD", "huge": 10**40}
    body = report(trusted, intent.pk, "confirmed", answer=answer).json()
    assert (body["settled_amount"], body["external_id"]) == ("50.00", None)
    text = intent.evidence.get().text
    assert '"amount":"0.01"' in text
    assert f'"huge":"{10**40}"' in text


def test_secrets_in_an_answer_are_masked(trusted: Api) -> None:
    intent = claimed(trusted)
    report(trusted, intent.pk, "failed", answer={"api_key": "sk_live_1234567890", "card": "4242 4242 4242 4242"})
    text = intent.evidence.get().text
    assert "sk_live" not in text
    assert "4242 4242 4242 4242" not in text


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"outcome": "failed", "answer": ...}, ["answer"]),
        ({"outcome": "failed", "answer": {}}, ["answer"]),
        ({"outcome": "failed", "answer": None}, ["answer"]),
        ({"outcome": "done"}, ["outcome"]),
        ({"outcome": None}, ["outcome"]),
        ({"outcome": "accepted"}, ["outcome"]),
        ({"attempt": ...}, ["attempt"]),
        ({"attempt": "1"}, ["attempt"]),
        ({"attempt": True}, ["attempt"]),
        ({"attempt": 0}, ["attempt"]),
        ({"attempt": 2**31}, ["attempt"]),
        ({"claim_token": ...}, ["claim_token"]),
        ({"claim_token": ""}, ["claim_token"]),
        ({"external_id": 7}, ["external_id"]),
        ({"external_id": "x" * 256}, ["external_id"]),
        ({"answer": "yes"}, ["answer"]),
        ({"answer": {"text": "x" * 70_000}}, ["answer"]),
        ({"status": "confirmed"}, ["status"]),
    ],
)
def test_what_is_no_report_changes_nothing(trusted: Api, fields: dict[str, Any], wrong: list[str]) -> None:
    intent = claimed(trusted)
    assert fields_of(report(trusted, intent.pk, **({"outcome": "confirmed"} | fields))) == wrong
    assert (read(intent).status, intent.evidence.count()) == ("submitted", 0)


def test_reports_are_taken_from_a_paused_agent(trusted: Api) -> None:
    intent = claimed(trusted)
    trusted.agent.paused = True
    trusted.agent.save()
    assert report(trusted, intent.pk, "confirmed").json()["status"] == "confirmed"


def test_the_token_is_in_no_evidence(trusted: Api) -> None:
    intent = make_intent(trusted.kind, trusted.agent, executor="caller")
    trusted.post(attempts_of(intent.pk), {"claim_token": "very-secret-token"})
    report(trusted, intent.pk, "confirmed", token="very-secret-token")
    report(trusted, intent.pk, "confirmed", token="also-secret-token")
    assert not any("secret" in text for text in intent.evidence.values_list("text", flat=True))
