"""Stops at the desk: who places and lifts them, what a case shows of them, and that nobody approves past one."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import stops, times
from actions.errors import BadDecision
from actions.models import Intent, Stop
from actions.statuses import Status
from reconciliation.models import Choice, Decision, DecisionReason, Review
from reconciliation.reviews import deciding, effects, options, pending
from tests import factories
from tests.pages.cases import hidden_of, log_in, make_case, make_held, text_of

pytestmark = pytest.mark.django_db

GIVEN = {"scope": "customer", "value": "c-5", "kind": "", "reason": "Mule account"}


def place(scope: str = "customer", value: str = "c-5", **more: Any) -> Stop:
    return stops.place(scope, value, **({"reason": "Mule account.", "actor_id": "person:1"} | more))


def held(**columns: Any) -> Review:
    return make_held(**({"customer": "c-5", "payee": "p-7", "subject": "order-1"} | columns))


def decide(review: Review, choice: Choice, **more: Any) -> deciding.Decided:
    review = Review.objects.select_related("intent").get(pk=review.pk)
    given = {"person": factories.make_person(), "reason": DecisionReason.JUSTIFIED, "note": ""}
    return deciding.decide(review.pk, choice=choice, seen=deciding.seen(review), **(given | more))


# the page


def test_a_reviewer_places_a_stop_and_it_is_in_force() -> None:
    intent = factories.make_intent(customer="C-5")
    client, person = log_in(first_name="Mara")
    response = client.post("/stops/place/", GIVEN, follow=True)
    assert response.redirect_chain == [("/stops/", 302)]
    stop = Stop.objects.get()
    assert (stop.scope, stop.value, stop.kind, stop.placed_by) == ("customer", "c-5", None, f"person:{person.pk}")
    page = text_of(response)
    assert "Stopped: the customer c-5. Nothing that it concerns is sent." in page
    for words in ("Mule account", "Mara", "every kind", 'data-copy="c-5"'):
        assert words in page
    assert Intent.objects.get(pk=intent.pk).status == "held"


def test_a_stop_may_be_for_one_kind() -> None:
    kind = factories.make_kind(title="Payout")
    client, _ = log_in()
    page = text_of(client.post("/stops/place/", GIVEN | {"kind": kind.name}, follow=True))
    assert Stop.objects.get().kind == kind
    assert "<td>Payout</td>" in page
    assert "Stopped: the customer c-5, for Payout." in page


def test_the_same_stop_again_is_said_to_be_there_already() -> None:
    place()
    client, _ = log_in()
    page = text_of(client.post("/stops/place/", GIVEN | {"value": "C - 5", "reason": "x"}, follow=True))
    assert "There is a stop already on the customer c-5; it stays as it is." in page
    assert Stop.objects.count() == 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"value": " "}, "Which: Say which one."),
        ({"value": "c\u200b5"}, "Which: It holds a control or invisible character."),
        ({"value": "x" * 201}, "Which: Ensure this value has at most 200 characters"),
        ({"scope": "subject", "value": "order-1//2"}, "Which: The subject, or a part of it, is empty."),
        ({"scope": "world"}, "What: Select a valid choice."),
        ({"kind": "none-of-ours"}, "For: Select a valid choice."),
        ({"reason": ""}, "Reason: Say why: whoever meets it will ask."),
    ],
)
def test_what_can_not_be_taken_is_said_and_what_was_typed_stays(wrong: dict[str, str], words: str) -> None:
    client, _ = log_in()
    response = client.post("/stops/place/", GIVEN | wrong)
    page = text_of(response)
    assert response.status_code == 422
    assert words in page
    assert ("Mule account" in page) is ("reason" not in wrong)
    assert not Stop.objects.exists()


def test_a_supervisor_lifts_it_and_it_is_listed_as_lifted() -> None:
    review = held(customer="c-9")
    stop = place()
    client, person = log_in("supervisor", first_name="Jon")
    assert "Lift the stop on the customer c-5" in text_of(client.get("/stops/"))
    page = text_of(client.post(f"/stops/{stop.pk}/lift/", follow=True))
    stop.refresh_from_db()
    assert (stop.lifted_by, stop.lifted_at is not None) == (f"person:{person.pk}", True)
    assert "Lifted: the customer c-5. What it held still waits for its own approval." in page
    assert "Nothing is stopped." in page
    assert "Lifted lately" in page
    assert "Jon" in page
    assert review.closed_at is None


def test_lifting_twice_changes_nothing_and_lifting_none_is_not_found() -> None:
    stop = place()
    stops.lift(stop.pk, actor_id="person:1")
    client, _ = log_in("supervisor")
    assert client.post(f"/stops/{stop.pk}/lift/").status_code == 302
    assert Stop.objects.get().lifted_by == "person:1"
    assert client.post(f"/stops/{stop.pk + 1}/lift/").status_code == 404


def test_a_reviewer_lifts_none() -> None:
    stop = place()
    client, _ = log_in()
    page = text_of(client.get("/stops/"))
    assert "Lift the stop" not in page
    assert "Supervisors and administrators lift stops." in page
    response = client.post(f"/stops/{stop.pk}/lift/")
    assert response.status_code == 403
    assert "Only supervisors and administrators lift a stop" in text_of(response)
    assert Stop.objects.get().lifted_at is None


def test_auditors_read_and_change_nothing() -> None:
    stop = place()
    client, _ = log_in("auditor")
    page = text_of(client.get("/stops/?scope=customer&value=c-6"))
    assert "Mule account." in page
    assert "Place the stop" not in page
    assert "Lift the stop" not in page
    for path in ("/stops/place/", f"/stops/{stop.pk}/lift/"):
        response = client.post(path, GIVEN | {"value": "c-6"})
        assert response.status_code == 403
        assert "nothing was changed" in text_of(response)
    assert Stop.objects.get().lifted_at is None


def test_whoever_has_no_role_sees_none(client: Any) -> None:
    place()
    assert client.get("/stops/").status_code == 302
    assert client.post("/stops/place/", GIVEN).status_code == 302
    nobody = factories.make_person("auditor")
    nobody.user_permissions.clear()
    client.force_login(nobody)
    for response in (client.get("/stops/"), client.post("/stops/place/", GIVEN)):
        assert response.status_code == 403
        assert "Mule" not in text_of(response)
    assert Stop.objects.count() == 1


def test_a_get_changes_nothing() -> None:
    stop = place()
    client, _ = log_in("supervisor")
    assert client.get("/stops/?scope=customer&value=c-6&reason=x&kind=&case=7").status_code == 200
    for path in ("/stops/place/", f"/stops/{stop.pk}/lift/"):
        assert client.get(path).status_code == 405
    assert Stop.objects.get().lifted_at is None


def test_the_address_fills_in_the_form_as_text() -> None:
    client, _ = log_in()
    page = text_of(client.get("/stops/", {"scope": "payee", "value": '"><script>alert(1)</script>', "case": "x"}))
    assert '<option value="payee" selected>' in page
    assert "<script>alert" not in page
    assert "&quot;&gt;&lt;script&gt;alert(1)" in page
    assert "Back to the case" not in page


def test_what_was_written_stays_text() -> None:
    place("payee", "<b>p</b>", reason="<img src=x onerror=alert(1)>")
    client, _ = log_in("supervisor")
    main = text_of(client.get("/stops/")).split("<main", 1)[1]
    assert "<b>" not in main
    assert "<img" not in main


def test_the_list_goes_on_and_costs_the_same() -> None:
    kind, now = factories.make_kind(), times.now()
    client, _ = log_in()

    def add(*numbers: int) -> None:
        given = {"scope": "customer", "kind": kind, "reason": "x", "placed_at": now}
        Stop.objects.bulk_create(
            Stop(value=f"c-{number}", key=f"c-{number}", placed_by=f"person:{number}", **given) for number in numbers
        )

    def get(path: str) -> tuple[list[int], str, int]:
        with CaptureQueriesContext(connection) as queries:
            page = text_of(client.get(path))
        return [int(number) for number in re.findall(r'data-copy="c-(\d+)"', page)], page, len(queries)

    add(1, 2)
    few = get("/stops/")[2]
    add(*range(3, 54))
    shown, page, cost = get("/stops/")
    assert (shown, cost) == (list(range(53, 3, -1)), few)
    (following,) = re.findall(r'rel="next" href="(\?after=[^"]+)"', page)
    assert get(f"/stops/{following}")[0] == [3, 2, 1]
    assert get("/stops/?after=nonsense")[0] == shown


# the case


def test_a_case_shows_the_stops_that_concern_it() -> None:
    review = held()
    mara = factories.make_person(first_name="Mara")
    place(actor_id=f"person:{mara.pk}")
    place("subject", "order-1/line-2", reason="<i>recalled</i>")
    place("payee", "somebody-else")
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "A stop is on the customer" in page
    assert "Mule account." in page
    assert "Mara" in page
    assert "A stop is on the subject" in page
    assert "&lt;i&gt;recalled&lt;/i&gt;" in page
    assert "somebody-else" not in page


@pytest.mark.parametrize("make", [held, lambda: make_case(customer="c-5", payee="p-7", subject="order-1")])
def test_from_a_case_a_stop_is_two_clicks_away_and_leads_back(make: Any) -> None:
    review = make()
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"
    links = re.findall(r'href="(/stops/\?scope=[^"]+)"', text_of(client.get(path)))
    assert len(links) == 3
    (link,) = [one.replace("&amp;", "&") for one in links if "customer" in one]
    response = client.get(link)
    given = {name: field.value() or "" for name, field in ((f.name, f) for f in response.context["form"])}
    assert (given["scope"], given["value"]) == ("customer", "c-5")
    assert f'href="{path}">← Back to the case' in text_of(response)
    response = client.post("/stops/place/", given | {"reason": "x"}, follow=True)
    assert response.redirect_chain == [(path, 302)]
    assert "A stop is on the customer" in text_of(response)


def test_a_name_with_signs_of_its_own_fills_in_the_form_as_it_is() -> None:
    review = held(customer="a&b=c/d+e #1 ü", payee="")
    client, _ = log_in()
    links = re.findall(r'href="(/stops/\?scope=[^"]+)"', text_of(client.get(f"/reviews/{review.pk}/")))
    assert len(links) == 2
    form = client.get(links[1].replace("&amp;", "&")).context["form"]
    assert form["value"].value() == "a&b=c/d+e #1 ü"


def test_auditors_see_a_cases_stops_and_no_way_to_place_one() -> None:
    review = held()
    place()
    client, _ = log_in("auditor")
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "A stop is on the customer" in page
    assert "/stops/?scope=" not in page


def test_a_case_costs_the_same_however_many_stops_concern_it() -> None:
    review = held()
    place(actor_id=f"person:{factories.make_person().pk}")
    client, _ = log_in()
    path = f"/reviews/{review.pk}/"

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(path)
        return len(queries)

    few = cost()
    for number in range(5):
        place("subject", f"order-1/line-{number}", actor_id=f"person:{factories.make_person().pk}")
    assert cost() == few


# deciding


def test_what_a_stop_concerns_can_be_rejected_and_not_approved() -> None:
    review = held()
    place()
    client, person = log_in()
    path = f"/reviews/{review.pk}/"
    page = client.get(path)
    blocked = {option.choice: option.blocked for option in options.options(review, person=person)}
    assert blocked == {
        Choice.APPROVE: "A stop is on the customer c-5 (Mule account): lift it first.",
        Choice.REJECT: "",
    }
    assert "A stop is on the customer c-5 (Mule account): lift it first." in text_of(page)
    assert re.search(r'value="approve"[^>]* disabled>', text_of(page))
    given = {"choice": "approve", "reason": "justified", "note": ""} | hidden_of(page)
    response = client.post(path + "decide/", given)
    assert response.status_code == 422
    assert "A stop is on the customer c-5" in text_of(response)
    assert Intent.objects.get(pk=review.intent_id).status == "held"
    assert not Decision.objects.exists()
    client.post(path + "decide/", given | {"choice": "reject", "reason": "suspected_fraud"})
    assert Intent.objects.get(pk=review.intent_id).status == "cancelled"


def test_several_stops_are_all_named() -> None:
    review = held()
    place()
    place("payee", "p-7", reason="Sanctions list")
    place("subject", "order-1/line-2", reason="Recalled")
    with pytest.raises(BadDecision) as told:
        decide(review, Choice.APPROVE)
    assert told.value.message == (
        "Stops are on the customer c-5 (Mule account), the payee p-7 (Sanctions list) and the subject order-1/line-2 "
        "(Recalled): lift them first."
    )


def test_lifting_releases_nothing_and_then_it_can_be_approved() -> None:
    stop = place()
    review = held()
    stops.lift(stop.pk, actor_id="person:1")
    assert Intent.objects.get(pk=review.intent_id).status == "held"
    assert Review.objects.get(pk=review.pk).closed_at is None
    assert decide(review, Choice.APPROVE).state == "effective"
    assert Intent.objects.get(pk=review.intent_id).status == "recorded"


def test_what_a_stop_held_says_so_in_its_case() -> None:
    intent = factories.make_intent(customer="c-5")
    place()
    review = Review.objects.get(intent=intent)
    client, _ = log_in()
    assert "stop applies to it" in text_of(client.get("/"))
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "Somebody placed a stop on what it concerns." in page
    assert "A person stopped what concerns it." in page, "in the timeline"


def test_a_second_vote_does_not_count_against_a_stop_that_came_after_the_first() -> None:
    review = held(amount_minor=600_000)
    assert decide(review, Choice.APPROVE).state == "second_person"
    stop, second = place(), factories.make_person()
    with pytest.raises(BadDecision, match="lift it first"):
        decide(review, Choice.APPROVE, person=second)
    stops.lift(stop.pk, actor_id="person:1")
    assert decide(review, Choice.APPROVE, person=second).state == "effective"


def test_a_stop_placed_before_an_approval_takes_effect_voids_it(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.LANDED_UNDO_S = 15
    review = held()
    decided = decide(review, Choice.APPROVE)
    assert decided.state == "undo_window"
    place()
    real = times.now
    monkeypatch.setattr(times, "now", lambda: real() + timedelta(seconds=20))
    assert pending.take_effect(decided.decision.pk)
    assert Intent.objects.get(pk=review.intent_id).status == "held"
    assert Decision.objects.get(about=decided.decision).choice == Choice.VOID


def test_whatever_carries_out_an_approval_looks_for_stops_itself() -> None:
    review = held()
    assert review.intent is not None
    digest = review.intent.payload_digest
    decided = Decision(
        review=review, intent=review.intent, choice=Choice.APPROVE, seen_version=1, payload_digest=digest
    )
    place()
    with pytest.raises(BadDecision, match="lift it first"):
        effects.carry_out(decided, review.intent, now=times.now())
    assert Intent.objects.get(pk=review.intent_id).status == Status.HELD
