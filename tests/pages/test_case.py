"""The case's page: what it shows, and that looking changes nothing."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core import serializers
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times
from actions.models import Attempt, Intent, Transition
from actions.statuses import Status
from reconciliation.models import Comment, LedgerEntry, Review, ReviewReason
from reconciliation.reviews import claiming, commenting
from tests import factories
from tests.pages.cases import log_in, make_case, make_held, text_of

pytestmark = pytest.mark.django_db


def rows() -> str:
    models: list[Any] = [Review, Intent, Transition, Comment, Attempt, LedgerEntry, ReviewReason]
    return serializers.serialize("json", [row for model in models for row in model.objects.order_by("pk")])


def test_opening_a_case_changes_nothing() -> None:
    review = make_case()
    before = rows()
    for role in ("reviewer", "supervisor", "auditor"):
        client, _ = log_in(role)
        for path in ("/", "/news/", f"/reviews/{review.pk}/", f"/intents/{review.intent_id}/", "/intents/?q=x"):
            assert client.get(path).status_code == 200
    assert rows() == before


@pytest.mark.parametrize("step", ["take", "release", "check", "comment", "decide"])
def test_what_changes_something_is_no_get_and_nothing_for_auditors(step: str) -> None:
    review = make_case()
    path = f"/reviews/{review.pk}/{step}/"
    client, _ = log_in()
    assert client.get(path).status_code == 405
    before = rows()
    auditor, _ = log_in("auditor")
    response = auditor.post(path, {"text": "x", "choice": "fail"})
    assert response.status_code == 403
    assert "nothing was changed" in text_of(response)
    assert rows() == before


def test_auditors_see_everything_and_no_button() -> None:
    review = make_case(note="please hurry")
    client, _ = log_in("auditor")
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "please hurry" in page
    for button in ("Take this case", "Check again", "Confirm: it happened", "Add comment"):
        assert button not in page.replace("Recommended: <strong>Confirm: it happened", "")


def test_the_answer_comes_first_in_words() -> None:
    review = make_case()
    Review.objects.filter(pk=review.pk).update(grounds="It looks as if it happened. The ledger shows one entry.")
    client, _ = log_in()
    response = client.get(f"/reviews/{review.pk}/")
    assert response.context["headline"] == ("It looks as if it happened.", "The ledger shows one entry.")


def test_our_own_amounts_carry_no_mark_of_hidden_characters() -> None:
    review = make_case()
    assert review.intent is not None
    for number, currency in enumerate(["EUR", "XXX"]):
        LedgerEntry.objects.create(
            downstream=review.intent.downstream,
            entry_id=f"re_{number}",
            role="effect",
            state="final",
            subject=review.intent.subject,
            amount_minor=123_456,
            currency=currency,
            first_seen_at=times.now(),
            last_seen_at=times.now(),
        )
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "U+00A0" not in page
    assert "minor units of XXX" in page, "a code that no currency has breaks no page"


def test_unknown_is_never_called_failed() -> None:
    review = make_case()
    client, _ = log_in()
    main = text_of(client.get(f"/reviews/{review.pk}/")).split("<main", 1)[1]
    assert "failed" not in main.replace("status-failed", "")
    assert "error" not in main


def test_a_case_is_taken_and_released_by_buttons() -> None:
    review = make_case()
    client, person = log_in()
    client.post(f"/reviews/{review.pk}/take/")
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "held by you until" in page
    assert "Release" in page
    client.post(f"/reviews/{review.pk}/release/")
    review.refresh_from_db()
    assert review.holder is None
    assert "nobody holds it" in text_of(client.get(f"/reviews/{review.pk}/"))
    assert person.owned_reviews.count() == 0


def test_who_holds_it_is_said_and_nobody_else_gets_the_form() -> None:
    review = make_case()
    jon = factories.make_person(first_name="Jon", last_name="Okafor")
    claiming.claim(review.pk, person=jon)
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "held by Jon Okafor until" in page
    assert 'name="choice"' not in page
    client.post(f"/reviews/{review.pk}/take/")
    assert "Somebody else holds this case." in text_of(client.get(f"/reviews/{review.pk}/"))
    review.refresh_from_db()
    assert review.holder == jon


def test_below_each_button_stands_what_follows() -> None:
    review = make_held()
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "Approve: send it" in page
    assert "It is sent once, with its own key." in page
    assert "Nothing is sent, and the agent is told not to propose it again." in page


def test_what_only_a_supervisor_may_is_shown_and_blocked() -> None:
    review = make_case()
    for role, may in (("reviewer", False), ("supervisor", True)):
        client, _ = log_in(role)
        options = client.get(f"/reviews/{review.pk}/").context["options"]
        assert [not option.blocked for option in options if option.choice == "fail"] == [may]


def test_the_timeline_says_how_far_a_request_got() -> None:
    review = make_case()
    now = times.now()
    Attempt.objects.create(
        intent_id=review.intent_id,
        number=1,
        fence=1,
        executor="landed",
        claimed_at=now - timedelta(seconds=20),
        lease_until=now,
        phase="sent",
        result="no_answer",
        reason="read_timeout",
        closed_at=now - timedelta(seconds=10),
        closed_by="answer",
    )
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "Sent: no answer after 10\u00a0s" in page
    assert "the request was fully sent" in page
    assert "The request was sent and no answer began in time" in page


def test_a_comment_is_kept_and_shown() -> None:
    review = make_case()
    client, _ = log_in(first_name="Mara")
    path = f"/reviews/{review.pk}/comment/"
    assert client.post(path, {"text": "I wrote to them."})["Location"] == f"/reviews/{review.pk}/"
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "Mara commented" in page
    assert "I wrote to them." in page
    response = client.post(path, {"text": "  "})
    assert response.status_code == 422
    assert "Write something first." in text_of(response)
    response = client.post(path, {"text": "x" * 4_001})
    assert response.status_code == 422
    assert Comment.objects.count() == 1


def test_a_case_costs_the_same_however_much_was_said() -> None:
    review = make_case()
    client, person = log_in()

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/reviews/{review.pk}/")
        return len(queries)

    speak(review, person, 2)
    few = cost()
    speak(review, person, 10)
    assert cost() == few


def speak(review: Review, person: User, times_: int) -> None:
    for number in range(times_):
        commenting.comment(review.pk, person=person, text=f"comment {number}")


def test_others_on_the_same_order_are_listed() -> None:
    kind = factories.make_kind()
    review = make_case(kind, subject="order-7")
    factories.make_intent(kind, subject="order-7/line-2", amount_minor=2_000)
    client, _ = log_in()
    page = text_of(client.get(f"/reviews/{review.pk}/"))
    assert "order-7/line-2" in page
    assert "€\u00a020.00" in page


def test_an_entry_that_no_intent_explains_has_a_page() -> None:
    now = times.now()
    entry = LedgerEntry.objects.create(
        downstream=factories.make_downstream(),
        entry_id="re_77",
        role="effect",
        state="final",
        subject="order-9",
        amount_minor=4_200,
        currency="EUR",
        first_seen_at=now,
        last_seen_at=now,
    )
    review = Review.objects.create(entry=entry, purpose="entry", opened_at=now, due_at=now)
    client, _ = log_in()
    response = client.get(f"/reviews/{review.pk}/")
    assert response.status_code == 200
    assert "No intent explains this entry." in text_of(response)
    assert "order-9" in text_of(client.get("/"))
    assert client.post(f"/reviews/{review.pk}/decide/", {}).status_code == 422


def test_a_history_that_was_changed_is_seen_on_the_intents_page() -> None:
    intent = factories.make_intent(to=Status.RECORDED)
    client, _ = log_in("auditor")
    assert "Every one of its 1 link holds" in text_of(client.get(f"/intents/{intent.pk}/"))
    Intent.objects.filter(pk=intent.pk).update(chain_length=2)
    assert "It does not hold" in text_of(client.get(f"/intents/{intent.pk}/"))
