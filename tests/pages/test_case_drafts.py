"""What is being typed is kept: for the person themselves, until it is sent."""

from typing import Any

import pytest

from reconciliation.models import Draft, Review
from reconciliation.reviews import claiming, drafts
from tests import factories
from tests.flow.world import World
from tests.pages.cases import log_in, make_case, make_held, text_of
from tests.pages.test_deciding_page import high_value, vote

pytestmark = pytest.mark.django_db


def path(review: Review, step: str = "") -> str:
    return f"/reviews/{review.pk}/{step}"


def typed(response: Any) -> tuple[str, str]:
    return response.context["form"]["note"].value() or "", response.context["comment_form"]["text"].value() or ""


def test_a_note_that_was_begun_is_there_again_also_from_another_browser() -> None:
    review = make_case()
    client, person = log_in()
    assert client.post(path(review, "draft/"), {"note": "half a thou"}).status_code == 204
    assert client.post(path(review, "draft/"), {"text": "and a comment"}).status_code == 204
    other, _ = log_in()
    other.force_login(person)
    assert typed(other.get(path(review))) == ("half a thou", "and a comment")
    assert Draft.objects.count() == 1


def test_nobody_else_sees_it() -> None:
    review = make_case()
    client, _ = log_in()
    client.post(path(review, "draft/"), {"note": "my thoughts alone"})
    for role in ("reviewer", "supervisor", "auditor", "admin"):
        other, _ = log_in(role)
        assert "my thoughts alone" not in text_of(other.get(path(review)))


def test_it_belongs_to_its_case() -> None:
    one, other = make_case(), make_case()
    client, _ = log_in()
    client.post(path(one, "draft/"), {"note": "about the first"})
    assert typed(client.get(path(other))) == ("", "")


def test_what_is_emptied_is_gone() -> None:
    review = make_case()
    client, _ = log_in()
    client.post(path(review, "draft/"), {"note": "a"})
    client.post(path(review, "draft/"), {"note": "  "})
    assert not Draft.objects.exists()


def test_a_comment_that_was_sent_ends_its_draft_and_not_the_notes() -> None:
    review = make_case()
    client, _ = log_in()
    client.post(path(review, "draft/"), {"note": "for later"})
    client.post(path(review, "draft/"), {"text": "I called"})
    client.post(path(review, "comment/"), {"text": "I called them."})
    assert typed(client.get(path(review))) == ("for later", "")


@pytest.mark.django_db(transaction=True)
def test_a_decision_ends_the_draft_of_its_note(world: World) -> None:
    _, review = high_value(world)
    client, _ = log_in()
    client.post(path(review, "draft/"), {"note": "seen"})
    page = client.get(path(review))
    client.post(path(review, "decide/"), vote(page, note="seen"))
    assert not Draft.objects.exists()
    client.post(path(review, "draft/"), {"note": "a straggler"})
    assert not Draft.objects.exists(), "nothing is kept for a decision that was made"


def test_what_was_refused_keeps_its_draft() -> None:
    review = make_held()
    client, _ = log_in()
    client.post(path(review, "draft/"), {"note": "why not"})
    response = client.post(path(review, "decide/"), vote(client.get(path(review)), "approve", reason=""))
    assert response.status_code == 422
    assert Draft.objects.exists()


def test_typing_keeps_ones_own_case_and_takes_nobodys() -> None:
    review = make_case()
    client, person = log_in()
    claiming.claim(review.pk, person=person)
    Review.objects.filter(pk=review.pk).update(lease_until=review.opened_at)
    client.post(path(review, "draft/"), {"note": "a"})
    review.refresh_from_db()
    assert review.lease_until is not None
    assert review.lease_until > review.opened_at
    other, _ = log_in()
    other.post(path(review, "draft/"), {"note": "a"})
    review.refresh_from_db()
    assert review.holder == person


def test_what_no_database_stores_and_what_is_too_long_breaks_nothing() -> None:
    review, person = make_case(), factories.make_person()
    drafts.keep(review.pk, person=person, note="a\x00b\ud800" + "c" * 9_000)
    kept = drafts.of(review, person=person).note
    assert kept.startswith("ab?ccc")
    assert len(kept) == 4_000


def test_it_is_no_get_nothing_for_auditors_and_nothing_without_a_case() -> None:
    review = make_case()
    client, _ = log_in()
    assert client.get(path(review, "draft/")).status_code == 405
    assert client.post("/reviews/999999/draft/", {"note": "a"}).status_code == 204
    auditor, _ = log_in("auditor")
    assert auditor.post(path(review, "draft/"), {"note": "a"}).status_code == 403
    assert not Draft.objects.exists()
