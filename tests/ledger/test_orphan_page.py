"""The page of a case about an entry: what it offers, what a decision sends back, and what it refuses."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions.models import Intent, Kind
from actions.statuses import Status
from reconciliation.models import Attachment, LedgerEntry, Match, MatchRole, Review
from reconciliation.reviews import attaching
from tests import factories
from tests.flushing import without_triggers
from tests.ledger.books import confirmed, failed, orphan
from tests.pages.cases import log_in, make_unknown, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind() -> Kind:
    return factories.make_kind()


def form_of(response: Any, **more: str) -> dict[str, str]:
    """What the form would send: the first intent offered is chosen."""
    found = response.context["orphan"]
    offers = found["offers"]
    named = offers[0][0] if offers else ""
    return {"seen_digest": found["seen"].digest, "named": named, "reason": "ledger", "note": "", **more}


def test_it_says_what_the_entry_is_and_offers_the_intents_on_its_order(kind: Kind) -> None:
    known = [confirmed(kind, subject="order-9"), failed(kind, subject="order-9/line-1")]
    confirmed(kind, subject="order-99")
    review = orphan(kind.downstream, subject="order-9", entry_id="re_lost")
    client, _ = log_in()
    response: Any = client.get(f"/reviews/{review.pk}/")
    page = text_of(response)
    offered = [offer.intent for _, offer, _ in response.context["orphan"]["offers"]]
    assert offered == list(reversed(known))
    for words in (
        "No intent explains this entry.",
        "re_lost",
        "It stays confirmed, and this entry is what settled it.",
        "It counts as failed: it becomes disputed",
        "Link the entry to an intent",
        "Mark the entry as a duplicate",
        "Mark the entry as not ours",
    ):
        assert words in page


def test_a_decision_on_the_page_takes_effect_and_the_page_tells_it(kind: Kind) -> None:
    intent = make_unknown(kind, subject="order-9")
    review = orphan(kind.downstream, subject="order-9")
    client, person = log_in(first_name="Mara")
    page: Any = client.get(f"/reviews/{review.pk}/")
    sent = client.post(f"/reviews/{review.pk}/decide/", form_of(page, choice="link", note="it fits"))
    assert sent.status_code == 302
    assert Intent.objects.get(pk=intent.pk).status == Status.CONFIRMED
    after = text_of(client.get(f"/reviews/{review.pk}/"))
    for words in (
        "It belongs to an intent.",
        "Mara",
        "it fits",
        f"/intents/{intent.pk}/",
        "Every one of its 2 links",
    ):
        assert words in after
    assert person.pk


def test_not_ours_needs_no_intent(kind: Kind) -> None:
    review = orphan(kind.downstream)
    client, _ = log_in()
    page: Any = client.get(f"/reviews/{review.pk}/")
    client.post(f"/reviews/{review.pk}/decide/", form_of(page, choice="not_ours"))
    assert Match.objects.get(entry=review.entry_id).role == MatchRole.NOT_OURS


def test_an_intent_that_was_not_shown_is_shown_before_anything_is_decided(kind: Kind) -> None:
    intent = confirmed(kind, subject="order-elsewhere")
    review = orphan(kind.downstream, subject="order-9")
    client, _ = log_in()
    page: Any = client.get(f"/reviews/{review.pk}/")
    sent = form_of(page, choice="duplicate", other=intent.idempotency_key, note="long thought")
    shown: Any = client.post(f"/reviews/{review.pk}/decide/", sent)
    assert shown.status_code == 422
    assert "Look at it, then decide." in text_of(shown)
    assert "long thought" in text_of(shown)
    assert not Match.objects.exists()
    ((_, offer, chosen),) = shown.context["orphan"]["offers"]
    assert (offer.intent, chosen) == (intent, True)
    again = client.post(f"/reviews/{review.pk}/decide/", form_of(shown, choice="duplicate"))
    assert again.status_code == 302
    assert Match.objects.get(entry=review.entry_id).intent == intent


def test_an_intent_that_there_is_not_is_said_so(kind: Kind) -> None:
    review = orphan(kind.downstream)
    client, _ = log_in()
    page: Any = client.get(f"/reviews/{review.pk}/")
    refused = client.post(f"/reviews/{review.pk}/decide/", form_of(page, choice="link", other="nothing"))
    assert (refused.status_code, "No intent of this downstream" in text_of(refused)) == (422, True)


def test_a_page_of_before_decides_nothing_and_shows_what_is(kind: Kind) -> None:
    review = orphan(kind.downstream)
    client, _ = log_in()
    page: Any = client.get(f"/reviews/{review.pk}/")
    LedgerEntry.objects.filter(pk=review.entry_id).update(amount_minor=1)
    refused = client.post(f"/reviews/{review.pk}/decide/", form_of(page, choice="not_ours", note="kept"))
    assert refused.status_code == 409
    assert "the facts have changed" in text_of(refused)
    assert "kept" in text_of(refused)
    assert not Match.objects.exists()


@pytest.mark.parametrize("sent", [{}, {"choice": "confirm"}, {"choice": "link", "reason": ""}, {"choice": "x"}])
def test_what_is_missing_is_said(kind: Kind, sent: dict[str, str]) -> None:
    review = orphan(kind.downstream)
    client, _ = log_in()
    page: Any = client.get(f"/reviews/{review.pk}/")
    assert client.post(f"/reviews/{review.pk}/decide/", form_of(page) | sent).status_code == 422


@pytest.mark.parametrize("named", ["", ":", "x:y:z", "0193f5d2-0000-7000-8000-000000000000:1:x", "9" * 200])
def test_a_forged_name_decides_nothing(kind: Kind, named: str) -> None:
    review = orphan(kind.downstream)
    client, _ = log_in()
    page: Any = client.get(f"/reviews/{review.pk}/")
    sent = client.post(f"/reviews/{review.pk}/decide/", form_of(page, choice="link") | {"named": named})
    assert sent.status_code in (409, 422)
    assert not Match.objects.exists()


def test_the_first_vote_is_shown_to_the_second_person(kind: Kind) -> None:
    intent = make_unknown(kind, subject="order-9", amount_minor=900_000)
    review = orphan(kind.downstream, subject="order-9", amount_minor=900_000)
    one, first = log_in(first_name="Mara")
    page: Any = one.get(f"/reviews/{review.pk}/")
    one.post(f"/reviews/{review.pk}/decide/", form_of(page, choice="link"))
    assert "You gave the first vote" in text_of(one.get(f"/reviews/{review.pk}/"))
    two, _ = log_in()
    page = two.get(f"/reviews/{review.pk}/")
    assert "Mara gave the first vote" in text_of(page)
    two.post(f"/reviews/{review.pk}/decide/", form_of(page, choice="link"))
    assert Intent.objects.get(pk=intent.pk).status == Status.CONFIRMED
    assert first.pk


def test_an_auditor_sees_it_and_can_decide_nothing(kind: Kind) -> None:
    review = orphan(kind.downstream)
    client, _ = log_in("auditor")
    page: Any = client.get(f"/reviews/{review.pk}/")
    assert "orphan" not in page.context
    assert "Your decision" not in text_of(page)
    assert client.post(f"/reviews/{review.pk}/decide/", {"choice": "not_ours"}).status_code == 403


def test_comments_and_looks_at_it_do_what_they_should(kind: Kind) -> None:
    review = orphan(kind.downstream)
    client, _ = log_in()
    client.post(f"/reviews/{review.pk}/comment/", {"text": "asked the provider"})
    assert "asked the provider" in text_of(client.get(f"/reviews/{review.pk}/"))
    assert client.post(f"/reviews/{review.pk}/check/").status_code == 404
    assert Review.objects.get(pk=review.pk).chain_length == 1


def test_a_page_costs_the_same_however_many_intents_the_order_has(kind: Kind) -> None:
    review = orphan(kind.downstream, subject="order-9")
    client, _ = log_in()

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get(f"/reviews/{review.pk}/")
        return len(queries)

    for _ in range(10):
        confirmed(kind, subject="order-9")
    few = cost()
    for _ in range(10):
        confirmed(kind, subject="order-9")
    assert cost() == few <= 40


def test_what_the_book_says_is_shown_as_text(kind: Kind) -> None:
    nasty = "<script>alert(1)</script>"
    review = orphan(kind.downstream, entry_id=nasty, subject=nasty, key=nasty)
    client, _ = log_in()
    assert "<script>alert" not in text_of(client.get(f"/reviews/{review.pk}/"))


def test_a_file_whose_bytes_are_others_shows_in_the_check_of_its_history(kind: Kind) -> None:
    review = orphan(kind.downstream)
    client, person = log_in()
    kept, changed = (
        attaching.attach(review.pk, person=person, name=name, content=b"line 12") for name in ("kept.txt", "a.txt")
    )
    attaching.erase(kept.pk, person=factories.make_person("admin"), reason="asked")
    assert "It does not hold" not in text_of(client.get(f"/reviews/{review.pk}/"))
    with without_triggers():
        Attachment.objects.filter(pk=changed.pk).update(content=b"line 13")
    page: Any = client.get(f"/reviews/{review.pk}/")
    (fault,) = page.context["faults"]
    assert fault.startswith(f"attachment {changed.pk}: Its bytes are not those that were added")
    assert "It does not hold" in text_of(page)
