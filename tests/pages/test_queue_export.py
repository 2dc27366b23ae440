"""The queue and the list of intents as files for a spreadsheet."""

import csv
import io
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from actions import times
from reconciliation.views import csv_out, paging
from tests import factories
from tests.ledger.books import orphan
from tests.pages.cases import log_in, make_case, make_held
from tests.pages.many import make_cases
from tests.pages.test_queue_tabs import put, put_aside

pytestmark = pytest.mark.django_db


def read(client: Client, path: str) -> list[dict[str, str]]:
    response: Any = client.get(path)
    assert response.status_code == 200
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Cache-Control"] == "private, no-store"
    return list(csv.DictReader(io.StringIO(b"".join(response.streaming_content).decode())))


def test_the_queue_is_exported_in_words_decimal_amounts_and_utc() -> None:
    client, _ = log_in("auditor")
    kind = factories.make_kind()
    case = make_case(kind, subject="order-1", amount_minor=64_000)
    make_held(kind, subject="yen", amount_minor=1_200, currency="JPY")
    orphan(kind.downstream, entry_id="re_1", subject="entry")
    put(case, due_at=times.now() - timedelta(minutes=1), customer_waiting=True)
    first, *others = read(client, "/queue.csv")
    said = {"what": "Refund", "order": "order-1", "amount": "640.00", "currency": "EUR", "status": "unknown"}
    said |= {"overdue": "yes", "customer waits": "yes", "why it is here": "High value", "who": ""}
    said |= {"recommended": "Confirm: it happened", "intent": str(case.intent_id)}
    assert said.items() <= first.items()
    assert first["due"].endswith("Z")
    assert first["due"][10] == "T"
    assert {row["order"]: row["amount"] for row in others}["yen"] == "1200"
    assert {row["order"]: row["what"] for row in others}["entry"] == "Ledger entry"


def test_it_holds_what_the_page_shows_tab_filters_order_and_all_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "PER_PAGE", 4)
    client, person = log_in()
    cases = make_cases(10, prefix="order")
    put_aside(cases[3], person, minutes=9)
    assert len(read(client, "/queue.csv")) == 10
    (aside,) = read(client, "/queue.csv?tab=waiting")
    assert (aside["order"], aside["waits for"]) == ("order-3", "the provider")
    stakes = [row["order"] for row in read(client, "/queue.csv?order=stake&tab=unclaimed")]
    assert len(stakes) == 9
    assert stakes[0] in ("order-2", "order-5", "order-8")
    assert read(client, "/queue.csv?kind=" + cases[0].intent.kind.name + "&reason=approval") == []


def test_intents_are_exported_as_filtered_or_as_found() -> None:
    client, _ = log_in()
    refund, transfer = factories.make_kind(name="refund"), factories.make_kind(name="transfer")
    case = make_case(refund, subject="order-1", amount_minor=64_000, external_id="re_1")
    make_case(transfer, subject="order-2")
    assert [row["order"] for row in read(client, "/intents.csv")] == ["order-2", "order-1"]
    (row,) = read(client, "/intents.csv?kind=refund&status=unknown")
    assert (row["order"], row["amount"], row["currency"], row["external id"]) == ("order-1", "640.00", "EUR", "re_1")
    assert row["open case"] == str(case.pk)
    assert [row["order"] for row in read(client, "/intents.csv?q=re_1")] == ["order-1"]


@pytest.mark.parametrize("path", ["/queue.csv", "/intents.csv"])
def test_a_cell_that_a_spreadsheet_would_run_begins_with_an_apostrophe(path: str) -> None:
    client, _ = log_in()
    kind = factories.make_kind()
    for subject in ("=HYPERLINK(1)", "+1", "-1", "@x"):
        make_case(kind, subject=subject)
    assert {row["order"] for row in read(client, path)} == {"'=HYPERLINK(1)", "'+1", "'-1", "'@x"}


@pytest.mark.parametrize("path", ["/queue.csv", "/intents.csv"])
def test_a_file_that_is_cut_says_so_in_its_last_line(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = log_in()
    make_cases(4)  # and one intent that they are copies of
    monkeypatch.setattr(csv_out, "MOST", 3)
    rows = read(client, path)
    assert len(rows) == 4
    assert "Cut here: there are more than 3 rows" in next(iter(rows[-1].values()))
    monkeypatch.setattr(csv_out, "MOST", 5)
    assert "Cut here" not in str(read(client, path))


def test_no_file_for_whoever_has_no_role() -> None:
    client = Client()
    assert client.get("/queue.csv").status_code == 302
    client.force_login(factories.make_person(is_active=True, role="reviewer"))
    assert client.post("/queue.csv").status_code == 405


def test_a_long_export_asks_page_by_page(django_assert_max_num_queries: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    client, _ = log_in()
    make_cases(120)
    with django_assert_max_num_queries(40):
        assert len(read(client, "/queue.csv")) == 120
