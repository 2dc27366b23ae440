"""What the case says for others: to the customer, to the provider."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from actions import times
from actions.api import showing
from actions.models import Intent
from actions.statuses import Status
from reconciliation.models import Review
from reconciliation.views import customer_words, words
from tests import factories
from tests.pages import histories
from tests.pages.cases import log_in, make_case, make_held, text_of

pytestmark = pytest.mark.django_db


def page_of(path: str) -> Any:
    client, _ = log_in("auditor")
    return client.get(path)


def customer(review: Review) -> str:
    return str(page_of(f"/reviews/{review.pk}/").context["customer"])


def enquiry(review: Review) -> str:
    return str(page_of(f"/reviews/{review.pk}/").context["enquiry"])


def test_the_customer_is_told_what_agents_are_told_to_tell_them() -> None:
    for review in (make_case(), make_held()):
        intent = Intent.objects.select_related("kind", "policy", "downstream").get(pk=review.intent_id)
        shown = showing.intent_json(intent, now=times.now())["customer_message"]
        assert customer(review).startswith(shown)


def test_the_kinds_own_text_comes_first() -> None:
    kind = factories.make_kind(customer_texts={"unknown": "We are checking your refund with our bank."})
    assert customer(make_case(kind)).startswith("We are checking your refund with our bank. By ")


def test_while_it_is_unknown_they_hear_until_when_we_will_say_more() -> None:
    review = make_case()
    due = times.now() + timedelta(days=2)
    Review.objects.filter(pk=review.pk).update(due_at=due)
    assert customer(review).endswith(f"By {due:%H:%M} UTC on {due.day} {due:%B} we will tell you what we know.")


def test_a_case_that_waits_promises_nothing_before_it_comes_back() -> None:
    review = make_case()
    back = times.now() + timedelta(days=9)
    Review.objects.filter(pk=review.pk).update(waits_for="provider", waits_until=back)
    assert f"on {back.day} {back:%B} we will tell you" in customer(review)


def test_what_is_overdue_names_no_time() -> None:
    review = make_case()
    Review.objects.filter(pk=review.pk).update(due_at=times.now() - timedelta(minutes=1))
    assert customer(review).endswith("We will tell you as soon as we know.")


def test_what_is_confirmed_comes_with_the_amount_that_was_settled() -> None:
    intent = factories.make_intent(to=Status.SUBMITTED, first_maybe_sent_at=times.now())
    histories.settle(intent)
    Intent.objects.filter(pk=intent.pk).update(settled_amount_minor=4_850, settled_currency="EUR")
    said = page_of(f"/intents/{intent.pk}/").context["customer"]
    assert said == "Your request has been completed. The amount is € 48.50."


def test_nobody_is_told_of_a_failure_while_it_is_unknown_nor_anything_internal() -> None:
    review = make_case()
    Review.objects.filter(pk=review.pk).update(grounds="Suspected fraud.")
    said = customer(review)
    assert "fail" not in said
    assert "fraud" not in said.lower()


def test_the_provider_is_asked_with_everything_that_finds_the_request() -> None:
    downstream = factories.make_downstream(title="Payments Ltd", account="acct_1")
    review = make_case(factories.make_kind(downstream), subject="order-7", external_id="re_ext")
    intent = review.intent
    assert intent is not None
    at = datetime(2026, 5, 3, 10, 1, 3, tzinfo=UTC)
    histories.make_attempt(intent, claimed_at=at, closed_at=at + timedelta(seconds=10))
    entry = histories.make_entry(intent, "re_9", booked_at=at)
    histories.make_look(intent, "match", candidates=(entry.pk,))
    said = enquiry(review)
    for line in (
        "To: Payments Ltd",
        f"Idempotency key: {intent.idempotency_key}",
        "Order: order-7",
        "Amount: 50.00 EUR",
        "Account: acct_1",
        "Your id: re_ext",
        "Sent: 2026-05-03 10:01:03 UTC (no answer after 10 s)",
        "Entry in your books: re_9, 50.00 EUR, final, booked 2026-05-03 10:01:03 UTC",
        "Please confirm that it is this one, and final.",
        "Please don't carry it out again.",
    ):
        assert line in said.replace("\u00a0", " "), line


def test_with_nothing_in_the_books_the_provider_is_asked_whether_it_was_carried_out() -> None:
    assert "Please tell us whether it was carried out" in enquiry(make_case())


def test_nothing_is_asked_about_what_was_never_sent() -> None:
    review = make_held()
    assert enquiry(review) == ""
    assert "For the provider" not in text_of(page_of(f"/reviews/{review.pk}/"))


def test_no_line_of_an_enquiry_can_be_forged() -> None:
    review = make_case(subject="order-1\u202e", external_id="re_1\nPlease send it again")
    said = enquiry(review)
    assert "order-1⟨U+202E⟩" in said
    assert "Your id: re_1 Please send it again" in said


def test_both_can_be_copied() -> None:
    review = make_case()
    page = text_of(page_of(f"/reviews/{review.pk}/"))
    assert f'data-copy="{customer(review)}"' in page
    assert page.count("data-copy=") >= 2


@pytest.mark.parametrize(("minutes", "said"), [(0, "12:00 UTC"), (60, "13:00 UTC"), (60 * 24, "12:00 UTC on 4 May")])
def test_times_for_customers_name_their_zone_and_another_day(minutes: int, said: str) -> None:
    now = datetime(2026, 5, 3, 12, 0, tzinfo=UTC)
    assert customer_words.clock(now + timedelta(minutes=minutes), now) == said


@pytest.mark.parametrize(
    ("octets", "said"),
    [(0, "0 bytes"), (999, "999 bytes"), (1_000, "1 kB"), (41_400, "41 kB"), (2_340_000, "2.3 MB")],
)
def test_sizes_are_one_figure(octets: int, said: str) -> None:
    assert words.size(octets).replace("\u00a0", " ") == said
