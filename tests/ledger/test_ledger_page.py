"""The list of entries: what explains each, and at what cost."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times
from actions.models import Kind
from reconciliation.models import Match, MatchRole
from tests import factories
from tests.ledger.books import confirmed, make_entry, orphan
from tests.pages.cases import log_in, make_unknown, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind() -> Kind:
    return factories.make_kind()


def shown(query: str = "", role: str = "reviewer") -> list[str]:
    client, _ = log_in(role)
    response: Any = client.get("/ledger/" + query)
    assert response.status_code == 200
    return [row.entry.entry_id for row in response.context["page"].rows]


def tie(entry: Any, intent: Any, role: MatchRole) -> None:
    Match.objects.create(entry=entry, intent=intent, role=role, entry_state=entry.state, by="x", at=times.now())


def test_entries_stand_newest_first_with_what_explains_them(kind: Kind) -> None:
    settled, known, unknown = confirmed(kind), confirmed(kind, external_id="re_known"), make_unknown(kind)
    tie(
        make_entry(kind.downstream, entry_id="re_1", settled_amount_minor=4_700, settled_currency="EUR"),
        settled,
        MatchRole.SETTLES,
    )
    make_entry(kind.downstream, entry_id="re_known")
    make_entry(kind.downstream, entry_id="re_3", key=unknown.idempotency_key)
    review = orphan(kind.downstream, entry_id="re_4")
    tie(make_entry(kind.downstream, entry_id="re_5"), None, MatchRole.NOT_OURS)
    client, _ = log_in("auditor")
    response: Any = client.get("/ledger/")
    rows = response.context["page"].rows
    assert [(row.entry.entry_id, row.intent, row.how) for row in rows] == [
        ("re_5", None, "not ours"),
        ("re_4", None, "no intent"),
        ("re_3", unknown, "bears its key"),
        ("re_known", known, "its own answer names it"),
        ("re_1", settled, "settles it"),
    ]
    page = text_of(response)
    assert f"/reviews/{review.pk}/" in page
    assert f"/intents/{settled.pk}/" in page
    assert "€\u00a047.00" in page
    assert 'href="/ledger/" aria-current="page"' in page


def test_the_tab_of_orphans_holds_those_with_an_open_case(kind: Kind) -> None:
    make_entry(kind.downstream)
    orphan(kind.downstream, entry_id="re_orphan")
    assert shown("?tab=orphans") == ["re_orphan"]


def test_the_tab_of_duplicates_holds_judged_ones_and_a_second_effect_under_one_of_our_keys(kind: Kind) -> None:
    intent, settled, other = make_unknown(kind), confirmed(kind), factories.make_kind()
    for name in ("re_first", "re_second"):
        make_entry(kind.downstream, entry_id=name, key=intent.idempotency_key)
    make_entry(kind.downstream, entry_id="re_failed", key=intent.idempotency_key, state="failed")
    make_entry(kind.downstream, entry_id="re_fee", key=intent.idempotency_key, role="fee")
    make_entry(other.downstream, entry_id="re_elsewhere", key=intent.idempotency_key)
    for name in ("re_foreign_1", "re_foreign_2"):
        make_entry(kind.downstream, entry_id=name, key="a foreign key")
    for name in ("re_4", "re_5"):
        make_entry(kind.downstream, entry_id=name)
    tie(make_entry(kind.downstream, entry_id="re_judged"), settled, MatchRole.DUPLICATE)
    assert shown("?tab=duplicates") == ["re_judged", "re_second"]


def test_the_one_that_settles_it_is_not_the_second_one(kind: Kind) -> None:
    intent = confirmed(kind)
    make_entry(kind.downstream, entry_id="re_early", key=intent.idempotency_key)
    tie(make_entry(kind.downstream, entry_id="re_late", key=intent.idempotency_key), intent, MatchRole.SETTLES)
    assert shown("?tab=duplicates") == ["re_early"]


def test_the_search_is_exact_over_id_key_and_order(kind: Kind) -> None:
    make_entry(kind.downstream, entry_id="re_a", subject="order-77")
    make_entry(kind.downstream, entry_id="re_b", key="key-9", subject="order-770")
    make_entry(factories.make_downstream(name="other"), entry_id="re_a", subject="order-1")
    assert shown("?q=re_a") == ["re_a", "re_a"]
    assert shown("?q=key-9") == ["re_b"]
    assert shown("?q=order-77") == ["re_a"]
    assert shown("?q=re_a&downstream=other") == ["re_a"]
    assert shown("?q=order-77&downstream=other") == []
    assert shown("?q=order") == []
    assert shown("?q=re_a&tab=orphans") == []


def test_it_goes_on_page_by_page_and_keeps_what_was_asked(kind: Kind) -> None:
    for number in range(53):
        make_entry(kind.downstream, entry_id=f"re_{number}", subject="order-1")
    client, _ = log_in()
    first: Any = client.get("/ledger/?q=order-1&tab=all")
    cursor = first.context["page"].following
    assert f"tab=all&amp;q=order-1&amp;after={cursor}" in text_of(first)
    second: Any = client.get(f"/ledger/?q=order-1&after={cursor}")
    assert [row.entry.entry_id for row in second.context["page"].rows] == ["re_2", "re_1", "re_0"]
    for nonsense in ("x", "W10", "WyJhIl0"):
        assert client.get(f"/ledger/?after={nonsense}").status_code == 200


@pytest.mark.parametrize("query", ["", "?tab=orphans", "?tab=duplicates", "?q=order-x"])
def test_it_costs_the_same_however_many_there_are(kind: Kind, query: str) -> None:
    client, _ = log_in()

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/ledger/" + query)
        return len(queries)

    def add(number: int) -> None:
        for _ in range(number):
            intent = confirmed(kind)
            tie(make_entry(kind.downstream), intent, MatchRole.DUPLICATE)
            orphan(kind.downstream)

    add(5)
    few = cost()
    add(20)
    assert cost() == few <= 14


def test_what_the_book_says_is_shown_as_text(kind: Kind) -> None:
    nasty = "<script>alert(1)</script>\u202e"
    orphan(kind.downstream, entry_id=nasty, subject=nasty, key=nasty)
    client, _ = log_in()
    page = text_of(client.get("/ledger/"))
    assert "<script>alert" not in page
    assert "\u202e" not in page.replace('data-copy="&lt;script&gt;alert(1)&lt;/script&gt;\u202e"', "")


def test_without_a_role_nobody_sees_it() -> None:
    from django.test import Client

    assert Client().get("/ledger/").status_code == 302
    client = Client()
    client.force_login(factories.User.objects.create_user("nobody"))
    assert client.get("/ledger/").status_code == 403
