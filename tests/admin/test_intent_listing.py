"""The list of intents: found by what people have in hand, at a cost that doesn't grow."""

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from actions.models import Intent
from tests.factories import make_intent, make_kind

pytestmark = pytest.mark.django_db


@pytest.fixture
def some(db: None) -> list[Intent]:
    kind = make_kind()
    return [
        make_intent(kind, subject=subject, external_id=external_id, idempotency_key=key)
        for subject, external_id, key in [
            ("order-4812", "", "key-a1"),
            ("order-4812x", "re_77", "key-a2"),
            ("order-5/line-1", "re_78", "key-b1"),
            ("order-5/line-2", "order-4812", "key-b2"),
        ]
    ]


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        ("order-4812", [0, 3]),  # exact: not order-4812x; the last by its external id
        ("order-48", [0, 1, 3]),
        ("order-5", [2, 3]),
        ("order-5/line-2", [3]),
        ("order-5/line", [2, 3]),
        ("key-a2", [1]),
        ("key-a", [0, 1]),
        ("re_78", [2]),
        ("re_7", [1, 2]),
        (" re_78 ", [2]),
        ("%", []),
        ("rder-4812", []),
        ("ORDER-48", []),
    ],
)
def test_an_intent_is_found_by_what_people_have_in_hand(
    page: Client, some: list[Intent], term: str, expected: list[int]
) -> None:
    found = page.get("/admin/actions/intent/", {"q": term}).context["cl"].result_list
    assert sorted(some.index(intent) for intent in found) == expected


def test_an_intent_is_found_by_its_id_and_by_how_that_begins(page: Client, some: list[Intent]) -> None:
    for term in (str(some[1].pk), some[1].pk.hex, str(some[1].pk)[:35]):
        found = page.get("/admin/actions/intent/", {"q": term}).context["cl"].result_list
        assert some[1] in found, term
        assert some[3] not in found or len(term) < 36


def test_the_listing_asks_the_same_few_questions_however_many_there_are(page: Client) -> None:
    kind = make_kind()
    counts = []
    for more in (1, 30):
        for _ in range(more):
            make_intent(kind)
        with CaptureQueriesContext(connection) as queries:
            page.get("/admin/actions/intent/")
        counts.append(len(queries))
        for query in queries:
            if "COUNT" in query["sql"]:
                assert "LIMIT 2000" in query["sql"]
    assert counts[0] == counts[1]


def test_the_listing_doesnt_sort_history(page: Client, some: list[Intent]) -> None:
    """`?o=` would sort millions of rows by a column without an index."""
    with CaptureQueriesContext(connection) as queries:
        page.get("/admin/actions/intent/", {"o": "4"})
    (listing,) = (q["sql"] for q in queries if "ORDER BY" in q["sql"] and 'FROM "actions_intent"' in q["sql"])
    assert 'ORDER BY "actions_intent"."id" DESC' in listing


@pytest.mark.parametrize("value", ["unsettled", "disputed", "either"])
def test_open_intents_are_filtered(page: Client, some: list[Intent], value: str) -> None:
    found = page.get("/admin/actions/intent/", {"open": value}).context["cl"].result_list
    assert len(found) == (0 if value == "disputed" else 4)
