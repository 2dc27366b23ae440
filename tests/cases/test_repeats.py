"""The same wish again: rephrased, under a fresh key, or larger than what was approved."""

import pytest

from actions.models import Intent, Kind
from reconciliation.models import Choice, DecisionReason
from tests.api.calling import Api, make_api, problem
from tests.factories import make_person
from tests.flow.test_deciding import decide
from tests.flow.world import World


@pytest.fixture
def api(world: World) -> Api:
    return make_api(world.kind)


def test_the_same_refund_under_the_ids_of_three_tool_calls_is_one_intent(world: World, api: Api) -> None:
    """No stable request key: the guard catches it while it is open, the look-alike rule once it is confirmed."""
    world.sandbox.order_fault("order-1", "lose_response")
    first = api.propose(key="c1", note="refund for order 1").json()
    for key in ("c3", "c5"):
        body = problem(api.propose(key=key, note="as discussed"), 409, "unsettled_duplicate")
        assert (body["intent_id"], body["same_payload"]) == (first["id"], True)
        world.send()
    intent = Intent.objects.get()
    assert intent.status == "unknown"
    problem(api.propose(key="c6"), 409, "unsettled_duplicate")
    world.check(intent)
    assert world.read(intent).status == "confirmed"
    fourth = api.propose(key="c7").json()
    assert (fourth["status"], fourth["look_alike_of"], fourth["next_step"]) == (
        "held",
        first["id"],
        "wait_for_person",
    )
    world.send()
    assert (world.posts(intent), len(world.booked(intent))) == (1, 1)


def test_what_was_approved_is_sent_once_and_not_what_is_asked_for_under_its_key_later(world: World, api: Api) -> None:
    Kind.objects.update(limits={"EUR": {"approve_above": 1_000}})
    held = api.propose(key="run-1/step-2", amount="40.00").json()
    assert held["status"] == "held"
    intent = Intent.objects.get()
    decide(world.review(intent), make_person(), Choice.APPROVE, reason=DecisionReason.JUSTIFIED)
    for sent in (False, True):
        body = problem(api.propose(key="run-1/step-2", amount="400.00"), 422, "key_reused")
        assert (body["differs"], body["intent"]["amount"], body["intent"]["id"]) == (["amount"], "40.00", held["id"])
        world.send()
        assert world.read(intent).status == "confirmed", sent
    assert [entry["amount_minor"] for entry in world.booked(intent)] == [4_000]
    assert world.posts(intent) == 1
    assert Intent.objects.count() == 1


def test_a_rephrased_note_under_the_same_key_sends_nothing_twice(world: World, api: Api) -> None:
    first = api.propose(key="k-1", note="The parcel was late.").json()
    for _ in range(2):
        again = api.propose(key="k-1", note="Delivery took too long, so I refund it.")
        assert (again.status_code, again["Idempotent-Replayed"]) == (200, "true")
        assert (again.json()["id"], again.json()["differs"]) == (first["id"], ["note"])
        world.send()
    intent = Intent.objects.get()
    assert (intent.status, intent.note, world.posts(intent)) == ("confirmed", "The parcel was late.", 1)


def test_two_spellings_are_one_subject_where_the_kind_folds_case(world: World, api: Api) -> None:
    Kind.objects.update(subject_case_folds=True)
    first = api.recorded(subject="Order-4812")
    assert first["subject"] == "order-4812"
    body = problem(api.propose(subject="order-4812 "), 409, "unsettled_duplicate")
    assert (body["intent_id"], body["same_payload"]) == (first["id"], True)
    problem(api.propose(subject="ORDER-4812/line-2"), 409, "unsettled_duplicate")
    world.send()
    assert api.recorded(subject="order-4812 ")["look_alike_of"] == first["id"], "confirmed, and the same thing again"


@pytest.mark.parametrize(
    ("first", "second"), [("order-4812", "order-4812/line-2"), ("order-4812/line-2", "order-4812")]
)
def test_an_order_that_is_unknown_blocks_its_lines_and_a_line_its_order(
    world: World, api: Api, first: str, second: str
) -> None:
    world.sandbox.order_fault(first, "error_500_not_booked")
    intent = api.intent(subject=first)
    world.send()
    assert world.read(intent).status == "unknown"
    assert problem(api.propose(subject=second), 409, "unsettled_duplicate")["intent_id"] == str(intent.pk)
    assert api.recorded(subject="order-4812/line-3" if "/" in first else "order-4813")["status"] == "recorded"
    assert world.sandbox.requests(second) == []
