"""Orders of the queue and its pages: nothing twice, nothing left out, whatever closes meanwhile; at a fixed cost."""

import base64
import json
import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times
from actions.models import Intent
from reconciliation.models import Review
from reconciliation.views import paging, queue
from reconciliation.views.queue_order import ORDERS
from tests import factories
from tests.pages.cases import log_in, make_case
from tests.pages.many import make_cases, view

pytestmark = pytest.mark.django_db


def orders(response: Any) -> list[str]:
    return [row.order for row in response.context["page"].rows]


def put(review: Review, **columns: Any) -> None:
    Review.objects.filter(pk=review.pk).update(**columns)


def close(review_id: int) -> None:
    Review.objects.filter(pk=review_id).update(closed_at=times.now(), closed_how="decision")


def test_it_can_be_ordered_by_due_by_stake_and_by_age() -> None:
    kind, now = factories.make_kind(), times.now()
    small, big, old = (make_case(kind, subject=name) for name in ("small", "big", "old"))
    put(small, due_at=now + timedelta(hours=1), stake=10)
    put(big, due_at=now + timedelta(hours=3), stake=5_000)
    put(old, due_at=now + timedelta(hours=2), stake=100)
    Intent.objects.filter(pk=old.intent_id).update(status_since=now - timedelta(days=1))
    client, _ = log_in()
    assert orders(client.get("/?order=due")) == ["small", "old", "big"]
    assert orders(client.get("/?order=stake")) == ["big", "old", "small"]
    assert orders(client.get("/?order=age")) == ["old", "small", "big"]


def test_of_what_is_due_at_once_more_at_stake_comes_first() -> None:
    kind, due = factories.make_kind(), times.now() + timedelta(hours=1)
    for name, stake in (("less", 10), ("more", 20)):
        put(make_case(kind, subject=name), due_at=due, stake=stake)
    assert orders(log_in()[0].get("/")) == ["more", "less"]


def test_the_column_that_orders_is_marked_for_everybody() -> None:
    make_case()
    client, _ = log_in()
    for order, words in (("due", 'class="due" aria-sort="ascending"'), ("stake", 'class="number" aria-sort="desc')):
        page = client.get("/", {"order": order}).content.decode()
        assert words in page
        assert page.count("aria-sort=") == 1


@pytest.mark.parametrize("order", ORDERS)
def test_twenty_five_people_page_through_while_cases_close_and_miss_none(
    order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "PER_PAGE", 7)
    dice = random.Random(order)
    cases, now = make_cases(41), times.now()
    for case in cases:  # different ages, some the same
        Intent.objects.filter(pk=case.intent_id).update(status_since=now - timedelta(minutes=case.pk % 9))
    left = {case.pk for case in cases}
    person = factories.make_person()
    asked = view(person, order=order)
    walks: dict[int, list[int]] = {number: [] for number in range(25)}
    at = dict.fromkeys(walks, "")
    going = list(walks)
    while going:
        walker = dice.choice(going)
        page = queue.page_of(replace(asked, after=at[walker]), now)
        walks[walker] += [row.review.pk for row in page.rows]
        at[walker] = page.following
        if not page.following:
            going.remove(walker)
        elif dice.random() < 0.15:
            closed = dice.choice(sorted(left))
            left.discard(closed)
            close(closed)
    for seen in walks.values():
        assert len(seen) == len(set(seen)), "nothing twice"
        assert left <= set(seen), "nothing left out"
    whole = [row.review.pk for row in queue.page_of(view(person, order=order), now).rows]
    assert [pk for pk in walks[0] if pk in left][:7] == [pk for pk in whole if pk in left], "in the same order"


def test_a_page_costs_the_same_queries_for_thirty_cases_and_for_three_hundred() -> None:
    kind = factories.make_kind()
    client, _ = log_in()
    paths = ["/", "/?order=stake", "/?order=age&tab=unclaimed", "/?reason=high_value&older=15min", "/news/?seen=1"]

    def costs() -> list[int]:
        found = []
        for path in paths:
            with CaptureQueriesContext(connection) as queries:
                assert client.get(path).status_code == 200
            found.append(len(queries))
        return found

    make_cases(30, kind, prefix="few")
    few = costs()
    make_cases(270, kind, prefix="more")
    assert costs() == few
    assert max(few) <= 20


def test_no_page_counts_or_skips_rows_of_intents() -> None:
    make_cases(3)
    client, _ = log_in()
    with CaptureQueriesContext(connection) as queries:
        following = client.get("/intents/").context["following"]
        client.get("/", {"after": paging.encode(0, times.now().isoformat(), 0, 1)})
    assert following is not None
    sql = [query["sql"] for query in queries]
    assert not [one for one in sql if "OFFSET" in one]
    assert not [one for one in sql if "COUNT" in one and 'FROM "actions_intent"' in one]


def made(*parts: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


BAD = [
    "x", "W10", "é", "bnVsbA", "=" * 50, "A" * 100_000, "%00",
    base64.urlsafe_b64encode(b"[" * 3_000).decode(),
    made(1, "not a time", 1, 1), made(0, "0001-01-01T00:00:00+23:59", 1, 1), made(0, "2026-01-01", 1, 1),
    made(0, "2026-01-01T00:00:00+00:00", 10**30, 1), made(0, "2026-01-01T00:00:00+00:00", "1", 1),
    made(0, "2026-01-01T00:00:00+00:00", 1, -1), made(True, "2026-01-01T00:00:00+00:00", 1, 1),
    made(10**30, "2026-01-01T00:00:00+00:00", 1, 1), made(1.5, "2026-01-01T00:00:00+00:00", 1, 1),
    made("2026-01-01T00:00:00+00:00", 1.5), made(None, None), made("9999-12-31T23:59:59-23:59", 1),
]  # fmt: skip


@pytest.mark.parametrize("after", BAD, ids=range(len(BAD)))
def test_a_cursor_that_is_none_shows_the_first_page(after: str) -> None:
    make_case(subject="order-1")
    client, _ = log_in()
    for order in ORDERS:
        assert orders(client.get("/", {"after": after, "order": order})) == ["order-1"]
    assert len(client.get("/intents/", {"after": after}).context["page"].rows) == 1


def test_a_cursor_of_another_order_shows_the_first_page() -> None:
    make_case(subject="order-1")
    client, _ = log_in()
    of_due = paging.encode(0, "2999-01-01T00:00:00+00:00", 0, 1)
    assert orders(client.get("/", {"after": of_due, "order": "due"})) == []
    for order in ("stake", "age"):
        assert orders(client.get("/", {"after": of_due, "order": order})) == ["order-1"]


def test_the_end_of_the_queue_says_so_and_leads_back() -> None:
    make_case()
    page = log_in()[0].get("/", {"after": paging.encode(0, "2999-01-01T00:00:00+00:00", 0, 1)}).content.decode()
    assert "No case comes after these any more." in page
    assert "First page" in page
