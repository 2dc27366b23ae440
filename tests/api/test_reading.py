"""GET /intents/{id}: the intent as an agent reads it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from actions import times, transitions
from actions.models import Attempt, ClosedBy, Intent, Result, SettledBy
from actions.reasons import Reason
from actions.statuses import Actor, Status
from tests.api.calling import Api, make_api, problem
from tests.factories import make_intent, make_kind

pytestmark = pytest.mark.django_db


def submit(intent: Intent, **columns: Any) -> Attempt:
    now = times.now()
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.SUBMITTED,
        actor=Actor.WORKER,
        actor_id="worker:secret-host/12",
        reason=Reason.CLAIMED,
        first_maybe_sent_at=now,
        lease_until=now + timedelta(seconds=30),
    )
    return Attempt.objects.create(
        intent=intent,
        number=1,
        fence=0,
        executor="landed",
        worker="secret-host/12",
        claimed_at=now,
        lease_until=now + timedelta(seconds=30),
        **columns,
    )


def end(intent: Intent, to: Status, *, result: Result, reason: str = "no_answer", **columns: Any) -> None:
    intent.attempts.filter(closed_at=None).update(
        closed_at=times.now(), closed_by=ClosedBy.ANSWER, result=result, reason=reason
    )
    transitions.apply(
        intent.pk,
        expected=(Status.SUBMITTED, Status.UNKNOWN),
        to=to,
        actor=Actor.WORKER,
        actor_id="worker:secret-host/12",
        reason=columns.pop("status_reason", "read_timeout"),
        **columns,
    )


def unknown(intent: Intent) -> None:
    submit(intent)
    end(intent, Status.UNKNOWN, result=Result.NO_ANSWER)


def test_an_intent_has_exactly_the_documented_members(api: Api) -> None:
    schema = api.get("/openapi.json").json()["components"]["schemas"]["IntentOut"]
    intent = api.intent()
    unknown(intent)
    body = api.get(f"/intents/{intent.pk}").json()
    assert set(body) | {"differs"} == set(schema["properties"])
    assert set(body) == set(schema["required"])


def test_an_unknown_one_may_have_happened_and_says_what_happens_next(api: Api) -> None:
    intent = api.intent()
    unknown(intent)
    body = api.get(f"/intents/{intent.pk}").json()
    assert (body["status"], body["status_reason"], body["settled"]) == ("unknown", "read_timeout", False)
    assert (body["next_step"], body["may_propose_again"]) == ("wait", False)
    assert "may have happened" in body["message"]
    assert "refused" in body["message"]
    assert "failed" not in body["message"].lower()
    assert "try again" not in body["message"].lower()
    assert body["attempt"] == {"number": 1, "lease_until": body["attempt"]["lease_until"], "may_send": False}
    intent.refresh_from_db()
    first = intent.first_maybe_sent_at
    assert first is not None
    until = datetime.fromisoformat(body["replay_safe_until"])
    assert until == first + timedelta(seconds=86_400)
    assert intent.next_check_at is not None
    assert datetime.fromisoformat(body["ask_again_at"]) > intent.next_check_at


def test_without_a_declared_window_no_replay_is_safe() -> None:
    kind = make_kind()
    kind.downstream.dedupe_window_s = None
    kind.downstream.save()
    api = make_api(kind)
    intent = api.intent()
    unknown(intent)
    assert api.get(f"/intents/{intent.pk}").json()["replay_safe_until"] is None


def test_a_confirmed_one_shows_what_was_settled(api: Api) -> None:
    intent = api.intent()
    submit(intent)
    end(
        intent,
        Status.CONFIRMED,
        result=Result.CONFIRMED,
        status_reason=Reason.CONFIRMED_BY_ANSWER,
        external_id="re_1",
        settled_amount_minor=4_900,
        settled_currency="EUR",
        settled_by=SettledBy.ANSWER,
    )
    body = api.get(f"/intents/{intent.pk}").json()
    assert (body["settled"], body["settled_amount"], body["settled_by"]) == (True, "49.00", "answer")
    assert (body["external_id"], body["ask_again_at"], body["next_step"]) == ("re_1", None, "done")
    assert body["settled_at"] is not None


def test_a_failed_one_may_be_proposed_again_unless_the_effect_exists_elsewhere(api: Api) -> None:
    for subject, reason, again in (("o-1", "refused_by_downstream", True), ("o-2", "effect_exists_elsewhere", False)):
        intent = api.intent(subject=subject)
        submit(intent)
        end(
            intent,
            Status.FAILED,
            result=Result.REFUSED,
            reason=reason,
            status_reason=Reason.REFUSED,
            settled_by=SettledBy.ANSWER,
        )
        body = api.get(f"/intents/{intent.pk}").json()
        assert (body["may_propose_again"], body["next_step"]) == (again, "done"), reason


def test_what_holds_it_back_for_suspicion_is_not_told(api: Api) -> None:
    intent = api.intent()
    transitions.apply(
        intent.pk,
        expected=Status.RECORDED,
        to=Status.HELD,
        actor=Actor.CHECKER,
        actor_id="checker:t",
        reason=Reason.HELD_ON_DISPUTE,
    )
    answer = api.get(f"/intents/{intent.pk}")
    assert answer.json()["status_reason"] == "in_review"
    assert "dispute" not in answer.content.decode().replace('"disputed":false', "")


def test_the_kinds_own_words_go_to_the_customer() -> None:
    api = make_api(make_kind(customer_texts={"recorded": "Your refund is on its way."}))
    intent = api.recorded()
    assert intent["customer_message"] == "Your refund is on its way."


def test_times_are_exact_and_in_utc(api: Api) -> None:
    intent = api.intent()
    body = api.get(f"/intents/{intent.pk}").json()
    assert datetime.fromisoformat(body["created_at"]) == intent.created_at
    assert body["created_at"].endswith("Z")
    assert datetime.fromisoformat(body["created_at"]).tzinfo == UTC


def test_without_an_amount_there_is_none(db: None) -> None:
    api = make_api(make_kind(amount_rule="none"))
    body = api.recorded(amount=..., currency=...)
    assert (body["amount"], body["currency"], body["settled_amount"]) == (None, None, None)


def test_another_agents_intent_is_not_there(api: Api) -> None:
    stranger = make_api(api.kind)
    intent = api.recorded()
    unseen = problem(stranger.get(f"/intents/{intent['id']}"), 404, "not_found")
    nowhere = problem(stranger.get("/intents/0193b4e0-0000-7000-8000-000000000000"), 404, "not_found")
    assert unseen == nowhere
    for tail in ("/history", ""):
        problem(stranger.get(f"/intents/{intent['id']}{tail}"), 404, "not_found")
    problem(api.get("/intents/no-uuid"), 404, "not_found")


def test_agents_of_one_group_read_each_others_but_no_group_is_no_group() -> None:
    one = make_api(group="support")
    other, third = make_api(one.kind, group="support"), make_api(one.kind, group="sales")
    intent = one.recorded(executor="caller")
    body = other.get(f"/intents/{intent['id']}").json()
    assert (body["id"], body["next_step"]) == (intent["id"], "wait")  # only its own agent is told to send it
    problem(third.get(f"/intents/{intent['id']}"), 404, "not_found")
    alone, also_alone = make_api(one.kind), make_api(one.kind)
    theirs = alone.recorded(subject="o-2")
    problem(also_alone.get(f"/intents/{theirs['id']}"), 404, "not_found")


def test_answers_are_never_kept_by_a_cache(api: Api) -> None:
    assert api.get(f"/intents/{api.recorded()['id']}")["Cache-Control"] == "no-store"


def test_reading_changes_nothing(api: Api) -> None:
    intent = make_intent(api.kind, api.agent)
    before = Intent.objects.values().get(pk=intent.pk)
    api.get(f"/intents/{intent.pk}")
    api.get(f"/intents/{intent.pk}/history")
    assert Intent.objects.values().get(pk=intent.pk) == before
