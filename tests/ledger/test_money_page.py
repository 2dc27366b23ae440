"""Money left to do: listed, summed, exported without formulas, and resolved with a note."""

import csv
import io
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from actions import times
from actions.models import Intent, Kind
from reconciliation.models import Choice, Difference, LeftToDo
from reconciliation.views.csv_out import harmless
from tests import factories
from tests.ledger.books import confirmed, decide, make_entry, orphan
from tests.pages.cases import log_in, text_of

pytestmark = pytest.mark.django_db


@pytest.fixture
def kind() -> Kind:
    return factories.make_kind()


def left(intent: Intent, **columns: Any) -> Difference:
    given = {"what": LeftToDo.RECOVER, "amount_minor": 5_000, "currency": "EUR", "opened_at": times.now()}
    return Difference.objects.create(intent=intent, **(given | columns))


def test_what_is_left_is_listed_with_its_intent_its_entry_and_whose_decision_it_was(kind: Kind) -> None:
    intent, person = confirmed(kind, external_id="re_first"), factories.make_person(first_name="Mara")
    decide(orphan(kind.downstream, entry_id="re_second"), person, Choice.DUPLICATE, intent)
    client, _ = log_in()
    page = text_of(client.get("/money/"))
    for words in ("Money to recover", "€\u00a050.00", intent.subject, "re_second", "Mara", f"/intents/{intent.pk}/"):
        assert words in page
    assert "Money to recover" in text_of(client.get(f"/intents/{intent.pk}/"))


def test_sums_are_per_currency_and_sort(kind: Kind) -> None:
    intent = confirmed(kind)
    left(intent)
    left(intent, amount_minor=70, what=LeftToDo.RECOVER)
    left(intent, amount_minor=120_000, currency="JPY")
    left(intent, what=LeftToDo.SEND)
    left(intent, what=LeftToDo.COMPARE, amount_minor=None, currency="USD")
    left(intent, amount_minor=1, resolved_at=times.now(), resolved_by="person:1")
    client, _ = log_in()
    response: Any = client.get("/money/")
    assert [(t.what, t.currency, t.count, t.amount_minor) for t in response.context["totals"]] == [
        ("other currency: compare", "USD", 1, None),
        ("money to recover", "EUR", 2, 5_070),
        ("money to recover", "JPY", 1, 120_000),
        ("still to send", "EUR", 1, 5_000),
    ]


def test_resolving_needs_a_note_and_is_shown_with_who_and_when(kind: Kind) -> None:
    row = left(confirmed(kind))
    client, person = log_in(first_name="Mara")
    refused = client.post(f"/money/{row.pk}/resolve/", {"note": " "})
    assert refused.status_code == 422
    assert "what was done" in text_of(refused)
    assert client.post(f"/money/{row.pk}/resolve/", {"note": "came back, bank line 7"}).status_code == 302
    row.refresh_from_db()
    assert row.resolved_by == f"person:{person.pk}"
    page = text_of(client.get("/money/"))
    assert "Nothing is left to do." in page
    for words in ("Resolved lately", "Mara", "came back, bank line 7"):
        assert words in page
    again = client.post(f"/money/{row.pk}/resolve/", {"note": "again"})
    assert (again.status_code, "already" in text_of(again)) == (422, True)
    assert client.post("/money/999999/resolve/", {"note": "x"}).status_code == 404


def test_an_auditor_reads_and_resolves_nothing(kind: Kind) -> None:
    row = left(confirmed(kind))
    client, _ = log_in("auditor")
    assert '<form class="resolve"' not in text_of(client.get("/money/"))
    assert client.post(f"/money/{row.pk}/resolve/", {"note": "x"}).status_code == 403
    assert client.get(f"/money/{row.pk}/resolve/").status_code == 405
    assert client.get("/money/money.csv").status_code == 200


def test_a_form_without_its_token_is_refused(kind: Kind) -> None:
    from django.test import Client

    row = left(confirmed(kind))
    client = Client(enforce_csrf_checks=True)
    client.force_login(factories.make_person())
    assert client.post(f"/money/{row.pk}/resolve/", {"note": "x"}).status_code == 403


def cells(client: Any) -> list[list[str]]:
    return list(csv.reader(io.StringIO(text_of(client.get("/money/money.csv")))))


def test_the_export_holds_open_and_resolved_and_no_formula(kind: Kind) -> None:
    intent = confirmed(kind, subject="=HYPERLINK(1)")
    entry = make_entry(kind.downstream, entry_id="@cmd")
    row = left(intent, entry=entry)
    left(intent, amount_minor=1_234, currency="JPY", resolved_at=times.now(), resolved_by="person:999999999")
    client, _ = log_in()
    head, first, second = cells(client)
    assert head[:7] == ["what", "amount", "currency", "order", "kind", "intent", "entry"]
    assert first[:7] == [
        "money to recover", "50.00", "EUR", "'=HYPERLINK(1)", "Refund", str(intent.pk), "'@cmd",
    ]  # fmt: skip
    assert (second[1], second[10]) == ("1234", "person:999999999")
    assert row.resolved_at is None


@pytest.mark.parametrize("text", ["=1", "+1", "-1", "@x", "\tx", "\x00x"])
def test_what_a_spreadsheet_would_run_begins_with_an_apostrophe(text: str) -> None:
    assert harmless(text) == f"'{text}"
    assert harmless(f"x{text}") == f"x{text}"


def test_it_goes_on_page_by_page_and_costs_the_same(kind: Kind) -> None:
    client, _ = log_in()
    intent = confirmed(kind)

    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            client.get("/money/")
        return len(queries)

    for _ in range(5):
        left(intent, entry=make_entry(kind.downstream))
        left(intent, resolved_at=times.now(), resolved_by="person:999999999", amount_minor=7)
    few = cost()
    for number in range(47):
        left(intent, amount_minor=number + 1)
    assert cost() == few <= 12
    first: Any = client.get("/money/")
    cursor = first.context["page"].following
    second: Any = client.get(f"/money/?after={cursor}")
    assert [row.left.amount_minor for row in second.context["page"].rows] == [46, 47]
    assert client.get("/money/?after=W10").status_code == 200


def test_notes_are_shown_as_text(kind: Kind) -> None:
    row = left(confirmed(kind))
    client, _ = log_in()
    client.post(f"/money/{row.pk}/resolve/", {"note": "<script>alert(1)</script>"})
    assert "<script>alert" not in text_of(client.get("/money/"))
