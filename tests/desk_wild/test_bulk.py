"""Many at once: a preview first, then an answer per row; never all or nothing, and nothing twice."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from actions import dispatch, stops, times
from actions.errors import PersonNotAllowed, TooLate
from actions.models import Intent, Transition
from actions.statuses import Status
from reconciliation.models import Choice, Comment, Decision, DecisionReason, Review
from reconciliation.reviews import cancelling, claiming, deciding
from reconciliation.reviews.bulk import rows, running
from reconciliation.reviews.bulk.judging import MOVED, Asked, Bulk
from tests import factories
from tests.desk_wild import scenes
from tests.desk_wild.scenes import confirm, main_of
from tests.pages.cases import log_in, make_case, make_held, make_unknown

pytestmark = pytest.mark.django_db


def press(client: Any, action: str, **given: Any) -> Any:
    return client.post("/bulk/", {"action": action, "back": "/agent/x/"} | given)


def ids(*reviews: Review) -> list[str]:
    return [str(review.pk) for review in reviews]


def status(intent: Intent | None) -> str:
    assert intent is not None
    return str(Intent.objects.get(pk=intent.pk).status)


def words_of(response: Any, name: str) -> list[str]:
    return [one.words for one in response.context[name]]


# what is offered


def test_what_happened_and_what_is_sent_is_never_decided_for_many() -> None:
    """Nor by a forged form: neither as the action nor as anything else that it could name."""
    review, held = make_case(), make_held()
    client, _ = log_in("supervisor")
    offered = {"check", "assign", "wait", "cancel", "reject"}
    assert {one.value for one in Bulk} == offered
    for choice in [*(c.value for c in Choice if c.value not in offered), "", "CANCEL", "delete"]:
        for step in ("", "confirm"):
            rows_ = [f"r{review.pk}@1.1.1", f"r{held.pk}@1.1.1"]
            given = {"ids": ids(review, held), "row": rows_, "step": step, "note": "x", "reason": "justified"}
            response = press(client, choice, **given, choice=choice)
            assert response.status_code == 422
            assert "decided one by one. Nothing was done." in main_of(response)
    assert (status(review.intent), status(held.intent)) == ("unknown", "held")
    assert not Decision.objects.exists()
    assert {one.value for one in running._DO} == offered


def test_a_forged_choice_beside_an_action_decides_nothing_else() -> None:
    held, case = make_held(), make_case()
    client, _ = log_in()
    given = {"step": "confirm", "reason": "not_justified", "choice": "approve", "entry": "1", "waive_guard": "on"}
    press(client, "reject", row=[f"r{held.pk}", f"r{case.pk}"], **given)
    assert (status(held.intent), status(case.intent)) == ("cancelled", "unknown")
    assert [one.choice for one in Decision.objects.filter(about=None)] == ["reject"]


def test_auditors_do_nothing_at_the_page_and_at_the_functions() -> None:
    held = make_held()
    client, person = log_in("auditor")
    for given in ({"ids": ids(held)}, {"row": [f"r{held.pk}"], "step": "confirm", "note": "x"}):
        response = press(client, "cancel", **given)
        assert response.status_code == 403
    ticked = rows.read(reviews=ids(held))
    with pytest.raises(PersonNotAllowed):
        running.preview(Bulk.CANCEL, ticked, asked=Asked(), person=person)
    with pytest.raises(PersonNotAllowed):
        running.run(Bulk.CANCEL, ticked, asked=Asked(note="x"), person=person)
    assert held.intent is not None
    with pytest.raises(PersonNotAllowed):
        cancelling.cancel(held.intent.pk, person=person, note="x")
    assert status(held.intent) == "held"
    assert client.get("/bulk/").status_code == 405


# what is sent in


@pytest.mark.parametrize(
    "given",
    [
        {"ids": ["x"]},
        {"ids": ["-1"]},
        {"ids": ["9" * 40]},
        {"ids": ["\u0661"]},
        {"intents": ["not-a-uuid"]},
        {"intents": [str(uuid4())[:-1] + "z"]},
        {"row": ["q7@1.1.1"]},
        {"row": [""]},
    ],
)
def test_what_the_desk_has_not_made_is_refused_as_a_whole(given: dict[str, Any]) -> None:
    held = make_held()
    client, _ = log_in()
    response = press(client, "cancel", **({"ids": []} | given), step="")
    assert response.status_code == 422
    assert "not a list of cases or intents that the desk has made" in main_of(response)
    assert status(held.intent) == "held"


def test_nothing_ticked_and_more_than_500_say_so_and_do_nothing() -> None:
    client, _ = log_in()
    response = press(client, "cancel")
    assert response.status_code == 422
    assert "Nothing is ticked, so nothing was done." in main_of(response)
    assert 'href="/agent/x/"' in main_of(response)
    held = make_held()
    many = [*ids(held), *(str(number) for number in range(10_000, 10_500))]
    for given in ({"ids": many}, {"row": [f"r{pk}" for pk in many], "step": "confirm", "note": "x"}):
        response = press(client, "cancel", **given)
        assert response.status_code == 422
        assert "At most 500 at once: nothing was done." in main_of(response)
    assert status(held.intent) == "held"
    assert press(client, "cancel", ids=many[:500]).status_code == 200


def test_ids_of_nothing_are_rows_that_say_so() -> None:
    held = make_held()
    client, _ = log_in()
    preview = press(client, "cancel", ids=[*ids(held), "999999"], intents=[str(uuid4())])
    assert words_of(preview, "cant") == ["There is no such case or intent."] * 2
    assert len(preview.context["can"]) == 1
    done = confirm(client, preview, note="x")
    assert (len(done.context["done"]), status(held.intent)) == (1, "cancelled")


def test_the_same_one_ticked_twice_is_done_once() -> None:
    held = make_held()
    client, _ = log_in()
    preview = press(client, "cancel", ids=[*ids(held), *ids(held)])
    assert preview.context["count"] == 1


# preview


def test_a_preview_changes_nothing_and_says_of_each_what_would_happen() -> None:
    held, unknown = make_held(amount_minor=700), make_case()
    kind = factories.make_kind()
    gone = factories.make_intent(kind, to=Status.HELD)
    other = factories.make_person(first_name="Mara")
    cancelling.cancel(gone.pk, person=other, note="x")
    theirs = make_held()
    claiming.claim(theirs.pk, person=other)
    client, _ = log_in()
    before = list(Review.objects.order_by("pk").values())
    preview = press(client, "cancel", ids=ids(held, unknown, theirs), intents=[str(gone.pk)])
    page = main_of(preview)
    for words in (
        "Nothing is done yet.",
        "1 of 4 would be cancelled, ",
        "€\u00a07.00",
        "It may have been sent: it can&#x27;t be cancelled any more.",
        "Mara works on it at this moment.",
        "It is cancelled already.",
    ):
        assert words in page
    assert list(Review.objects.order_by("pk").values()) == before
    assert status(held.intent) == "held"


def test_a_preview_costs_the_same_for_one_as_for_many() -> None:
    client, _ = log_in()

    def cost(many: int) -> int:
        made = [make_held() for _ in range(many)]
        with CaptureQueriesContext(connection) as queries:
            assert press(client, "reject", ids=ids(*made)).status_code == 200
        return len(queries)

    # A kind and a policy of its own each: what is read of them is read once.
    assert cost(1) == cost(6)


# cancel


def test_what_is_unsent_is_cancelled_with_its_history_and_the_order_is_free() -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    recorded, held = scenes.recorded(kind, agent), factories.make_intent(kind, agent, to=Status.HELD)
    client, person = log_in()
    done = confirm(client, press(client, "cancel", intents=[str(recorded.pk), str(held.pk)]), note="Agent runs wild")
    assert main_of(done).count("Cancelled; it was never sent.") == 2
    for intent in (recorded, held):
        intent.refresh_from_db()
        assert (intent.status, intent.status_reason, intent.guard_key) == ("cancelled", "rejected", None)
        last = Transition.objects.filter(intent=intent).latest("sequence")
        assert (last.actor, last.actor_id) == ("reviewer", f"person:{person.pk}")
        assert intent.evidence.get().text == "Agent runs wild"
        assert str(intent.evidence.get().pk) in last.evidence
    assert Review.objects.get(intent=held).closed_how == "withdrawn"
    assert dispatch.claim(slots=8) == []


def test_pressed_twice_it_changes_nothing_more_and_says_so() -> None:
    made = [make_held() for _ in range(3)]
    client, _ = log_in()
    preview = press(client, "cancel", ids=ids(*made))
    confirm(client, preview, note="x")
    before = list(Transition.objects.order_by("pk").values())
    again = confirm(client, preview, note="x")
    assert again.context["done"] == []
    assert words_of(again, "already") == ["It is cancelled already."] * 3
    assert "3 were so already, and nothing was changed about them." in main_of(again)
    assert list(Transition.objects.order_by("pk").values()) == before


def test_one_that_was_claimed_since_the_preview_is_not_done_and_the_others_are() -> None:
    kind = scenes.sendable()
    agent = factories.make_agent(kind)
    made = [scenes.recorded(kind, agent) for _ in range(3)]
    client, _ = log_in()
    preview = press(client, "cancel", intents=[str(one.pk) for one in made])
    assert len(preview.context["can"]) == 3
    (claimed,) = dispatch.claim(slots=1)
    done = confirm(client, preview, note="x")
    assert len(done.context["done"]) == 2
    (row,) = done.context["not_done"]
    assert row.row.intent.pk == claimed.intent_id
    assert row.words == "It may have been sent: it can't be cancelled any more."
    assert status(row.row.intent) == "submitted"
    with pytest.raises(TooLate):
        cancelling.cancel(claimed.intent_id, person=factories.make_person(), note="x")


def test_what_is_held_since_the_preview_is_cancelled_all_the_same() -> None:
    """A stop that came in between makes it no less unsent."""
    kind = factories.make_kind()
    intent = scenes.recorded(kind, factories.make_agent(kind), customer="c-5")
    client, _ = log_in()
    preview = press(client, "cancel", intents=[str(intent.pk)])
    stops.place("customer", "c-5", reason="x", actor_id="person:1")
    assert status(intent) == "held"
    confirm(client, preview, note="x")
    assert status(intent) == "cancelled"


def test_a_reason_is_needed_and_what_was_ticked_stays_ticked() -> None:
    held = make_held()
    client, _ = log_in()
    preview = press(client, "cancel", ids=ids(held))
    response = confirm(client, preview, note=" ")
    assert response.status_code == 422
    assert "Note: Say why: colleagues will ask." in main_of(response)
    assert [one.row.value for one in response.context["can"]] == [one.row.value for one in preview.context["can"]]
    assert status(held.intent) == "held"


def test_somebody_elses_case_is_cancelled_by_a_supervisor_alone() -> None:
    held = make_held()
    claiming.claim(held.pk, person=factories.make_person(first_name="Mara"))
    assert held.intent is not None
    client, _ = log_in()
    done = press(client, "cancel", row=[f"r{held.pk}"], step="confirm", note="x")
    assert words_of(done, "not_done") == ["Mara works on it at this moment."]
    supervisor, _ = log_in("supervisor")
    done = press(supervisor, "cancel", row=[f"r{held.pk}"], step="confirm", note="x")
    assert len(done.context["done"]) == 1


def test_a_database_that_goes_away_leaves_the_rest_untried_and_unknown_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = [make_held() for _ in range(3)]
    person = factories.make_person()
    calls: list[Any] = []
    real = cancelling.cancel

    def away(*args: Any, **more: Any) -> bool:
        calls.append(args)
        if len(calls) == 2:
            raise OperationalError("the server closed the connection")
        return real(*args, **more)

    monkeypatch.setattr(running.cancelling, "cancel", away)
    came = running.run(Bulk.CANCEL, rows.read(reviews=ids(*made)), asked=Asked(note="x"), person=person)
    assert [one.came.value for one in came] == ["done", "unknown", "not_tried"]
    assert "we can't tell whether it was done" in came[1].words


# reject


def test_held_ones_are_rejected_with_one_reason_each_with_a_decision_of_its_own() -> None:
    made = [make_held() for _ in range(3)]
    client, person = log_in()
    done = confirm(client, press(client, "reject", ids=ids(*made)), reason="suspected_fraud", note="same payee")
    assert len(done.context["done"]) == 3
    for review in made:
        assert status(review.intent) == "cancelled"
        decision = Decision.objects.get(review=review, choice=Choice.REJECT)
        assert (decision.person, decision.reason) == (person, "suspected_fraud")
        assert decision.note is not None
        assert decision.note.text == "same payee"


def test_a_rejection_can_be_undone_while_its_window_is_open(settings: Any) -> None:
    settings.LANDED_UNDO_S = 15
    held = make_held()
    client, _ = log_in()
    preview = press(client, "reject", ids=ids(held))
    done = confirm(client, preview, reason="not_justified")
    assert words_of(done, "done") == ["Rejected; it takes effect in 15 s."]
    again = confirm(client, preview, reason="not_justified")
    assert words_of(again, "already") == ["It is rejected already; that takes effect in a moment."]
    assert Decision.objects.count() == 1
    assert status(held.intent) == "held"


def test_what_needs_care_of_its_own_is_not_rejected_with_others() -> None:
    other = factories.make_person(first_name="Mara")
    recommended, waiting_, voted, theirs, unknown = (*(make_held() for _ in range(4)), make_case())
    Review.objects.filter(pk=recommended.pk).update(recommendation=Choice.APPROVE)
    Review.objects.filter(pk=waiting_.pk).update(customer_waiting=True)
    claiming.claim(theirs.pk, person=other)
    limits = {"EUR": {"review_above": 0, "two_people_above": 0}}
    two = make_held(factories.make_kind(limits=limits))
    two = Review.objects.select_related("intent").get(pk=two.pk)
    deciding.decide(
        two.pk,
        person=other,
        choice=Choice.APPROVE,
        reason=DecisionReason.JUSTIFIED,
        note="x",
        seen=deciding.seen(two),
    )
    client, _ = log_in("supervisor")
    preview = press(client, "reject", ids=ids(recommended, waiting_, two, theirs, unknown, voted))
    assert words_of(preview, "cant") == [
        "The recommendation is another one: decide it by itself.",
        "Its customer is waiting: decide it by itself.",
        "Somebody has decided or voted on it: open it by itself.",
        "Mara works on it at this moment.",
        "It does not wait for an approval: there is nothing to reject.",
    ]
    forged = [f"r{review.pk}" for review in (recommended, waiting_, two, theirs, unknown)]
    done = press(client, "reject", row=forged, step="confirm", reason="not_justified")
    assert done.context["done"] == []
    assert {status(review.intent) for review in (recommended, waiting_, two, theirs)} == {"held"}


@pytest.mark.parametrize("reason", ["", "justified", "ledger", "made_up"])
def test_a_rejection_needs_a_reason_that_speaks_for_it(reason: str) -> None:
    held = make_held()
    client, _ = log_in()
    response = confirm(client, press(client, "reject", ids=ids(held)), reason=reason, note="x")
    assert response.status_code == 422
    assert status(held.intent) == "held"
    response = confirm(client, press(client, "reject", ids=ids(held)), reason="other", note="")
    assert "needs a note" in main_of(response)


# assign


def test_cases_are_handed_to_a_colleague_with_one_note() -> None:
    made = [make_case() for _ in range(2)]
    jon = factories.make_person(first_name="Jon")
    client, person = log_in()
    preview = press(client, "assign", ids=ids(*made))
    done = confirm(client, preview, to=str(jon.pk), note="From the outage")
    assert words_of(done, "done") == ["It belongs to Jon now."] * 2
    assert set(Review.objects.values_list("owner", flat=True)) == {jon.pk}
    assert {c.text.text for c in Comment.objects.all()} == {"From the outage"}
    assert {c.person for c in Comment.objects.all()} == {person}
    again = confirm(client, preview, to=str(jon.pk), note="From the outage")
    assert words_of(again, "already") == ["It is theirs already."] * 2
    assert Comment.objects.count() == 2


def test_a_case_that_was_taken_since_the_preview_stays_where_it_is() -> None:
    """Also for a supervisor, who could have: they have not seen that somebody works on it."""
    review = make_case()
    client, _ = log_in("supervisor")
    preview = press(client, "assign", ids=ids(review))
    claiming.claim(review.pk, person=factories.make_person(first_name="Mara"))
    done = confirm(client, preview, to=str(factories.make_person().pk), note="x")
    assert words_of(done, "not_done") == [MOVED]
    assert Review.objects.get().owner is None


def test_nobody_gets_cases_who_may_not_decide_them() -> None:
    review = make_case()
    client, _ = log_in()
    gone = factories.make_person(is_active=False)
    for wrong in (factories.make_person("auditor"), gone):
        response = confirm(client, press(client, "assign", ids=ids(review)), to=str(wrong.pk), note="x")
        assert response.status_code == 422
    assert Review.objects.get().owner is None


# wait


def test_cases_are_put_aside_together() -> None:
    made = [make_case() for _ in range(2)]
    client, _ = log_in()
    preview = press(client, "wait", ids=ids(*made))
    given = {"waits_for": "provider", "reference": "T-1", "until": "24", "longest": "72"}
    done = confirm(client, preview, **given)
    assert words_of(done, "done") == ["It is put aside."] * 2
    for review in Review.objects.all():
        assert (review.waits_for, review.waits_reference) == ("provider", "T-1")
        assert review.waits_until is not None
        assert timedelta(hours=23) < review.waits_until - times.now() < timedelta(hours=25)
    again = confirm(client, preview, **given)
    assert words_of(again, "already") == ["It is put aside already; on its page that can be changed."] * 2


# check


def test_looks_become_due_and_somebody_is_named_for_having_asked() -> None:
    review, bare = make_case(), make_unknown()
    Intent.objects.update(next_check_at=times.now() + timedelta(hours=1))
    client, person = log_in()
    preview = press(client, "check", ids=ids(review), intents=[str(bare.pk)])
    done = confirm(client, preview)
    assert len(done.context["done"]) == 2
    assert not Intent.objects.filter(next_check_at__gt=times.now()).exists()
    assert Comment.objects.get().person == person
    assert bare.evidence.get().source == f"person:{person.pk}"
    again = confirm(client, preview)
    assert words_of(again, "already") == ["It is to be looked at already."] * 2
    assert Comment.objects.count() == 1


def test_what_was_looked_at_since_the_preview_is_not_looked_at_again_unseen() -> None:
    review = make_case()
    client, _ = log_in()
    later = times.now() + timedelta(hours=1)
    Intent.objects.update(next_check_at=later)
    preview = press(client, "check", ids=ids(review))
    confirm(client, preview)
    # A worker has looked: the next one is planned for later.
    Intent.objects.update(next_check_at=later)
    again = confirm(client, preview)
    assert words_of(again, "not_done") == [MOVED]
    assert Intent.objects.get().next_check_at == later


def test_what_can_not_be_looked_up_says_why() -> None:
    kind = factories.make_kind(factories.make_downstream(look_up="none"))
    blind = make_case(kind)
    flying = factories.make_intent(to=Status.SUBMITTED, first_maybe_sent_at=times.now())
    Intent.objects.filter(pk=flying.pk).update(lease_until=times.now() + timedelta(minutes=1))
    client, _ = log_in()
    preview = press(client, "check", ids=ids(blind, make_held()), intents=[str(flying.pk)])
    assert words_of(preview, "cant") == [
        "This downstream has no look-up: only outside evidence can tell.",
        "Nothing was sent, so there is nothing to look for.",
        "It is being sent at this moment.",
    ]
