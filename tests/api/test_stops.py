"""What agents read of what a stop concerns: that a person looks first, as of everything that is held, and no more."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import stops
from actions.models import Attempt, Stop
from tests.api.calling import INTENTS, Api, attempts_of, claim, fields_of, make_caller, new_key, problem, report
from tests.factories import make_intent, make_kind

pytestmark = pytest.mark.django_db

WHY = "Mule account, see case 88"
PARAMS = {"customer": "c-5", "payee": "p-7"}


@pytest.fixture
def api(db: None) -> Api:
    return make_caller(make_kind(payee_from="payee", customer_from="customer", reports_trusted=True))


def stop(scope: str = "customer", value: str = "C-5") -> Stop:
    return stops.place(scope, value, reason=WHY, actor_id="person:1")


def everything(api: Api, found: dict[str, Any]) -> list[Any]:
    """All that an agent can be told of an intent."""
    return [
        api.get(f"/intents/{found['id']}"),
        api.get(f"/intents/{found['id']}/history"),
        api.get("/intents", {"subject": found["subject"]}),
        api.get("/intents", {"status": found["status"]}),
        api.propose(subject=found["subject"], params=PARAMS),
        claim(api, found["id"]),
        claim(api, found["id"], "t-2"),
        api.post(f"{attempts_of(found['id'])}/1/renew", {"claim_token": "t-1"}),
    ]


def told_nothing(answers: list[Any]) -> bool:
    bodies = [answer.content.decode() + str(answer.headers) for answer in answers]
    return not [body for body in bodies for word in ("stop", "mule", "case 88") if word in body.lower()]


@pytest.mark.parametrize(("scope", "value"), [("customer", "C-5"), ("payee", "ｐ-7"), ("subject", "ORDER-1/line-2")])
def test_a_new_proposal_reads_like_any_other_that_needs_approval(api: Api, scope: str, value: str) -> None:
    stop(scope, value)
    answer = api.propose(params=PARAMS, executor="caller", claim_token="t-1")
    found = answer.json()
    assert answer.status_code == 201
    assert (found["status"], found["status_reason"], found["next_step"]) == (
        "held",
        "needs_approval",
        "wait_for_person",
    )
    assert (found["review"]["open"], found["review"]["for"], found["attempt"]) == (True, "approval", None)
    assert "a person has to approve it first" in found["message"]
    assert told_nothing([answer, *everything(api, found)])
    assert not Attempt.objects.exists()


def test_it_reads_the_same_as_one_above_the_limit() -> None:
    kind = make_kind(customer_from="customer", limits={"EUR": {"approve_above": 4_999}})
    limited, other = make_caller(kind), make_caller(make_kind(customer_from="customer", title=kind.title))
    stop()
    above, stopped = (
        limited.recorded(subject="order-2"),
        other.recorded(params={"customer": "c-5"}, subject="order-2"),
    )
    own = {"id", "kind", "params", "idempotency_key", "review", "ask_again_at", "created_at", "updated_at"}
    own |= {"send_before"}
    assert {name: above[name] for name in set(above) - own} == {name: stopped[name] for name in set(stopped) - own}
    assert above["review"].keys() == stopped["review"].keys()


def test_what_was_recorded_reads_that_a_person_looks_at_it(api: Api) -> None:
    found = api.recorded(params=PARAMS, executor="caller")
    stop()
    body = api.get(f"/intents/{found['id']}").json()
    assert (body["status"], body["status_reason"], body["next_step"]) == ("held", "in_review", "wait_for_person")
    assert (body["review"]["for"], body["may_propose_again"]) == ("approval", False)
    rows = api.get(f"/intents/{found['id']}/history").json()["transitions"]
    assert [(row["to"], row["actor"], row["reason"]) for row in rows] == [
        ("recorded", "agent", "recorded"),
        ("held", "person", "in_review"),
    ]
    assert told_nothing(everything(api, body))


def test_a_claim_that_meets_a_stop_is_told_that_a_person_has_to_approve(api: Api, monkeypatch: Any) -> None:
    monkeypatch.setattr(stops, "_recorded", lambda _: iter(()))
    intent = make_intent(api.kind, api.agent, executor="caller", customer="c-5", subject="order-3")
    stop()
    answer = claim(api, intent.pk)
    body = problem(answer, 409, "not_approved")
    assert (body["intent"]["status"], body["intent"]["status_reason"]) == ("held", "in_review")
    assert (body["next_step"], body["detail"]) == ("wait_for_person", body["title"])
    assert told_nothing([answer, *everything(api, body["intent"])])


def test_whoever_claimed_it_may_not_send_it_any_more(api: Api) -> None:
    key = new_key()
    found = api.propose(key=key, params=PARAMS, executor="caller", claim_token="t-1").json()
    assert found["attempt"]["may_send"] is True
    placed = stop()
    again = claim(api, found["id"])
    assert (again.status_code, again.json()["attempt"]["may_send"]) == (200, False)
    replayed = api.propose(key=key, params=PARAMS, executor="caller", claim_token="t-1")
    assert (replayed.json()["attempt"]["may_send"], replayed.json()["next_step"]) == (False, "report")
    renewed = api.post(f"{attempts_of(found['id'])}/1/renew", {"claim_token": "t-1"})
    problem(renewed, 409, "not_approved")
    assert told_nothing([again, replayed, renewed, *everything(api, found | {"status": "submitted"})])
    stops.lift(placed.pk, actor_id="person:2")
    assert claim(api, found["id"]).json()["attempt"]["may_send"] is True
    stop()
    assert report(api, found["id"], "confirmed").json()["status"] == "confirmed", "the truth is always taken"


def test_a_proposal_on_what_is_held_is_refused_as_every_duplicate_is(api: Api) -> None:
    stop()
    api.recorded(params=PARAMS)
    answer = api.propose(subject="order-1/line-2")
    assert problem(answer, 409, "unsettled_duplicate")["next_step"] == "wait_for_person"
    assert told_nothing([answer])


def test_it_may_be_withdrawn_and_then_proposed_again(api: Api) -> None:
    stop()
    found = api.recorded(params=PARAMS)
    withdrawn = api.post(f"/intents/{found['id']}/cancel")
    assert (withdrawn.json()["status"], withdrawn.json()["may_propose_again"]) == ("cancelled", True)
    assert told_nothing([withdrawn])


def test_a_list_asks_for_no_stops(api: Api) -> None:
    for number in range(3):
        api.recorded(subject=f"order-{number}", executor="caller", claim_token="t-1", params=PARAMS)
    with CaptureQueriesContext(connection) as queries:
        assert len(api.get(INTENTS).json()["data"]) == 3
    assert not [query for query in queries if '"actions_stop"' in query["sql"]]


def test_a_paused_agent_reads_and_withdraws_what_was_never_sent(api: Api) -> None:
    """As docs/stops.md says."""
    found = api.recorded()
    type(api.agent).objects.update(paused=True)
    assert api.get(f"/intents/{found['id']}").status_code == 200
    assert api.post(f"/intents/{found['id']}/cancel").json()["status"] == "cancelled"


# --- whom it concerns, in one spelling


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("c-5", "c-5"),
        ("  c-5\u3000", "c-5"),
        ("c\u00a05", "c 5"),
        ("cafe\u0301", "café"),
        (77, "77"),
        ("x" * 200, "x" * 200),
        ("", ""),
        ("   ", ""),
        (None, ""),
    ],
)
def test_payee_and_customer_have_one_spelling(api: Api, written: Any, kept: str) -> None:
    intent = api.intent(params={"payee": written, "customer": written})
    assert (intent.payee, intent.customer) == (kept, kept)
    assert intent.params_data["customer"] == written, "what is sent stays as the agent wrote it"


@pytest.mark.parametrize(
    "written",
    ["c-5\u200b", "c\u202e-5", "c\n5", "c\t5", "c\u00ad5", "c\ufe0f5", "x" * 201, True, ["c-5"], {"id": "c-5"}],
)
def test_what_can_t_be_read_for_certain_is_refused_naming_the_field(api: Api, written: Any) -> None:
    assert fields_of(api.propose(params={"payee": written})) == ["params.payee"]
    assert fields_of(api.propose(params={"customer": written})) == ["params.customer"]
    assert fields_of(api.propose(params={"payee": written, "customer": written})) == [
        "params.payee",
        "params.customer",
    ]


def test_a_field_inside_others_is_named_by_the_kinds_expression() -> None:
    api = make_caller(make_kind(customer_from="order.customer.id"))
    assert fields_of(api.propose(params={"order": {"customer": {"id": "c\u200b5"}}})) == ["params.order.customer.id"]


def test_a_replay_of_what_was_recorded_before_names_had_one_spelling_is_a_replay(api: Api) -> None:
    """An upgrade must not turn a repeated call into another one."""
    key, params = new_key(), {"customer": "c\u200b5", "payee": ["p-7"]}
    intent = make_intent(api.kind, api.agent, subject="order-1", params=params, request_key=key, customer="c\u200b5")
    again = api.propose(key=key, params=params)
    assert (again.status_code, again.json().get("id")) == (200, str(intent.pk))
