"""The queue: what waits, in which order, at what cost."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from actions import times
from reconciliation.models import Review
from reconciliation.reviews import claiming
from tests import factories
from tests.pages.cases import log_in, make_case, text_of

pytestmark = pytest.mark.django_db


def orders(response: Any) -> list[str]:
    return [row.order for row in response.context["page"].rows]


def counted(client: Client, path: str = "/") -> dict[str, int]:
    return {name: count for name, _, count, _ in client.get(path).context["tabs"]}


def put(review: Review, **columns: Any) -> None:
    Review.objects.filter(pk=review.pk).update(**columns)


def test_those_whose_customer_waits_come_first_then_as_they_are_due() -> None:
    kind, now = factories.make_kind(), times.now()
    late = make_case(kind, subject="late")
    waiting = make_case(kind, subject="waiting")
    soon = make_case(kind, subject="soon")
    put(late, due_at=now + timedelta(hours=3))
    put(waiting, due_at=now + timedelta(hours=9), customer_waiting=True)
    put(soon, due_at=now + timedelta(hours=1))
    client, _ = log_in()
    assert orders(client.get("/")) == ["waiting", "soon", "late"]


def test_a_row_says_what_why_how_long_and_by_when() -> None:
    make_case(subject="order-1", amount_minor=64_000)
    client, _ = log_in()
    page = text_of(client.get("/"))
    for words in ("Refund", "order-1", "€\u00a0640.00", "High value", "unknown", "in\u00a0"):
        assert words in page


def test_tabs_hold_mine_the_unclaimed_all_and_the_overdue() -> None:
    kind = factories.make_kind()
    client, person = log_in()
    mine, free, late = (make_case(kind, subject=name) for name in ("mine", "free", "late"))
    claiming.claim(mine.pk, person=person)
    claiming.claim(late.pk, person=factories.make_person())
    put(late, due_at=times.now() - timedelta(minutes=1))
    assert orders(client.get("/?tab=mine")) == ["mine"]
    assert orders(client.get("/?tab=unclaimed")) == ["free"]
    assert orders(client.get("/?tab=overdue")) == ["late"]
    assert counted(client) == {
        "mine": 1, "unclaimed": 1, "second": 0, "waiting": 0, "overdue": 1, "incidents": 0, "all": 3,
    }  # fmt: skip
    assert free.holder is None


def test_a_case_is_unclaimed_again_when_the_lease_is_over() -> None:
    client, person = log_in()
    review = make_case(subject="order-1")
    claiming.claim(review.pk, person=person)
    put(review, lease_until=times.now() - timedelta(seconds=1))
    assert orders(client.get("/?tab=mine")) == []
    assert orders(client.get("/?tab=unclaimed")) == ["order-1"]


def test_closed_cases_are_gone() -> None:
    review = make_case()
    put(review, closed_at=times.now(), closed_how="decision")
    client, _ = log_in()
    assert orders(client.get("/")) == []
    assert "Nothing waits for a person." in text_of(client.get("/"))


def cost_of(client: Client, path: str) -> int:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        assert client.get(path).status_code == 200
    return len(queries)


@pytest.mark.parametrize("path", ["/", "/intents/"])
def test_fifty_rows_cost_as_many_queries_as_five(path: str) -> None:
    kind = factories.make_kind()
    agent = factories.make_agent(kind)
    client, _ = log_in()
    for _ in range(5):
        make_case(kind, agent=agent)
    few = cost_of(client, path)
    for _ in range(45):
        make_case(kind, agent=agent)
    assert cost_of(client, path) == few


def test_pages_follow_each_other_without_gap_or_repetition(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciliation.views.paging.PER_PAGE", 3)
    monkeypatch.setattr("reconciliation.views.paging.cut.__kwdefaults__", {"per_page": 3})
    kind, due = factories.make_kind(), times.now() + timedelta(hours=1)
    for number in range(8):
        # Equal due times: only the id tells them apart.
        put(make_case(kind, subject=f"order-{number}"), due_at=due, customer_waiting=number < 4)
    client, _ = log_in()
    seen: list[str] = []
    after = ""
    while True:
        response = client.get("/", {"after": after})
        seen += orders(response)
        after = response.context["page"].following
        if not after:
            break
    assert seen == [f"order-{number}" for number in range(8)]


@pytest.mark.parametrize("after", ["x", "W10", "WzEsIm5vdCBhIHRpbWUiLDFd", "é", "bnVsbA", "WzEsMiwzXQ"])
def test_a_cursor_that_is_none_shows_the_first_page(after: str) -> None:
    make_case(subject="order-1")
    client, _ = log_in()
    assert orders(client.get("/", {"after": after})) == ["order-1"]


def test_the_next_case_is_the_most_urgent_free_one() -> None:
    client, person = log_in()
    review = make_case()
    assert client.post("/next/")["Location"] == f"/reviews/{review.pk}/"
    review.refresh_from_db()
    assert review.holder == person
    other, _ = log_in()
    assert other.post("/next/")["Location"] == "/"
    assert "No case is free" in text_of(other.get("/"))


def test_auditors_have_no_buttons() -> None:
    make_case()
    client, _ = log_in("auditor")
    assert "Next case" not in text_of(client.get("/"))
    assert client.post("/next/").status_code == 403
