"""POST /intents/{id}/cancel"""

import pytest

from actions import withdrawing
from actions.models import Intent, Transition
from actions.reasons import Reason
from actions.statuses import Actor
from tests.api.calling import Api, fields_of, make_api, problem
from tests.api.test_reading import submit, unknown

pytestmark = pytest.mark.django_db


def test_what_was_never_sent_is_withdrawn_and_frees_its_subject(api: Api) -> None:
    intent = api.recorded()
    answer = api.post(f"/intents/{intent['id']}/cancel")
    body = answer.json()
    assert (answer.status_code, body["status"], body["status_reason"]) == (200, "cancelled", "cancelled_by_agent")
    assert (body["settled"], body["settled_by"], body["may_propose_again"]) == (True, "nothing_sent", True)
    row = Transition.objects.get(intent=intent["id"], sequence=2)
    assert (row.actor, row.actor_id) == ("agent", f"agent:{api.agent.pk}")
    api.recorded()


def test_a_held_one_is_withdrawn_too(api: Api) -> None:
    intent = api.recorded(amount="20000.00")
    assert api.post(f"/intents/{intent['id']}/cancel", b"{}").json()["status"] == "cancelled"


def test_withdrawing_twice_is_withdrawing_once(api: Api) -> None:
    intent = api.recorded()
    one, two = (api.post(f"/intents/{intent['id']}/cancel") for _ in range(2))
    assert one.json() == two.json()
    assert Transition.objects.filter(intent=intent["id"]).count() == 2


@pytest.mark.parametrize("end", [submit, unknown])
def test_once_it_may_have_been_sent_it_is_too_late(api: Api, end: object) -> None:
    intent = api.intent()
    end(intent)  # type: ignore[operator]
    body = problem(api.post(f"/intents/{intent.pk}/cancel"), 409, "too_late")
    intent.refresh_from_db()
    assert (body["intent"]["id"], body["intent"]["status"]) == (str(intent.pk), intent.status)
    assert "failed" not in body["detail"]


def test_a_claimed_one_is_too_late(api: Api) -> None:
    intent = api.recorded(executor="caller", claim_token="t")
    assert problem(api.post(f"/intents/{intent['id']}/cancel"), 409, "too_late")["intent"]["status"] == "submitted"


def test_the_group_reads_but_does_not_withdraw(db: None) -> None:
    one = make_api(group="support")
    other, stranger = make_api(one.kind, group="support"), make_api(one.kind)
    intent = one.recorded()
    problem(other.post(f"/intents/{intent['id']}/cancel"), 403, "not_allowed")
    problem(stranger.post(f"/intents/{intent['id']}/cancel"), 404, "not_found")
    assert Intent.objects.get().status == "recorded"


def test_it_takes_no_fields(api: Api) -> None:
    intent = api.recorded()
    assert fields_of(api.post(f"/intents/{intent['id']}/cancel", {"why": "x"})) == ["why"]
    problem(api.post(f"/intents/{intent['id']}/cancel", b"{"), 400, "bad_json")
    assert Intent.objects.get().status == "recorded"


def test_what_a_person_rejected_is_not_to_be_proposed_again(api: Api) -> None:
    intent = api.recorded(amount="20000.00")
    withdrawing.cancel(Intent.objects.get().pk, actor=Actor.REVIEWER, actor_id="person:1", reason=Reason.REJECTED)
    body = api.get(f"/intents/{intent['id']}").json()
    assert (body["status_reason"], body["may_propose_again"]) == ("rejected", False)
