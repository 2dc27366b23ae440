"""What the page learns every ten seconds: figures, marks, and how many came; nothing that moves a row."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from actions import times
from reconciliation.models import Review
from reconciliation.reviews import claiming
from tests import factories
from tests.pages.cases import log_in, make_case, make_held, text_of
from tests.pages.test_queue_tabs import put, put_aside, vote

pytestmark = pytest.mark.django_db


def ask(client: Client, page: Any) -> Any:
    """What the page asks for: its own address says what it shows."""
    found = re.search(r'id="pulse" hx-get="([^"]+)"', text_of(page))
    assert found
    return client.get(found[1].replace("&amp;", "&"))


def marks(response: Any) -> dict[int, tuple[str, bool]]:
    return {mark.review_id: (mark.words, mark.gone) for mark in response.context["marks"]}


def test_it_tells_of_new_cases_of_this_tab_as_filtered_and_only_of_those() -> None:
    client, _ = log_in()
    refund, transfer = factories.make_kind(name="refund"), factories.make_kind(name="transfer")
    make_case(refund)
    page, filtered = client.get("/"), client.get("/?kind=transfer")
    assert "new case" not in text_of(ask(client, page))
    make_held(refund)
    make_held(refund)
    assert "2 new cases: show" in text_of(ask(client, page))
    assert "new case" not in text_of(ask(client, filtered))
    make_held(transfer)
    assert 'href="/?tab=all&amp;kind=transfer">1 new case: show' in text_of(ask(client, filtered))


def test_it_says_a_thing_once_and_no_row_is_in_the_answer() -> None:
    client, _ = log_in()
    page = client.get("/")
    make_held()
    first = ask(client, page)
    assert 'id="news"' in text_of(first)
    again = ask(client, first)
    assert 'id="news"' not in text_of(again), "a screen reader would say it again"
    assert "<tr" not in text_of(again)


def test_the_figures_in_the_tabs_renew() -> None:
    client, person = log_in()
    case = make_case()
    page = client.get("/")
    claiming.claim(case.pk, person=person)
    said = text_of(ask(client, page))
    assert '<span class="count" id="count-mine" hx-swap-oob="true">1</span>' in said
    assert '<span class="count" id="count-unclaimed" hx-swap-oob="true">0</span>' in said


def test_what_became_of_the_rows_is_said_in_place() -> None:
    client, person = log_in()
    kind, jon = factories.make_kind(), factories.make_person(first_name="Jon")
    names = ("taken", "mine", "decided", "voted", "evidence", "aside", "same")
    cases = {name: make_case(kind, subject=name) for name in names}
    page = client.get("/")
    claiming.claim(cases["taken"].pk, person=jon)
    claiming.claim(cases["mine"].pk, person=person)
    put(cases["decided"], closed_at=times.now(), closed_how="decision")
    put(cases["evidence"], closed_at=times.now(), closed_how="resolved_by_evidence")
    vote(cases["voted"], jon, takes_effect_at=times.now() + timedelta(seconds=15))
    put_aside(cases["aside"], jon, minutes=5)
    said = marks(ask(client, page))
    assert {name: said.get(case.pk) for name, case in cases.items()} == {
        "taken": ("now with Jon", True),
        "mine": ("now with you", False),
        "decided": ("decided", True),
        "voted": ("decided", True),
        "evidence": ("settled by evidence", True),
        "aside": ("put aside to wait", True),
        "same": None,
    }


def test_a_case_that_is_given_back_is_free_again() -> None:
    client, _ = log_in()
    case, jon = make_case(), factories.make_person(first_name="Jon")
    page = client.get("/")
    claiming.claim(case.pk, person=jon)
    taken = ask(client, page)
    assert marks(ask(client, taken)) == {}, "said once"
    claiming.release(case.pk, person=jon)
    assert marks(ask(client, taken)) == {case.pk: ("free again", False)}


def test_a_name_is_shown_as_text() -> None:
    client, _ = log_in()
    case = make_case()
    page = client.get("/")
    claiming.claim(case.pk, person=factories.make_person(first_name="<b>Jon</b>"))
    assert "<b>" not in text_of(ask(client, page))


@pytest.mark.parametrize(
    "states", ["x", "1.", ".c", "1.c-1.d-x.y", "9" * 60 + ".0", "-".join(["1.0"] * 900), "é.c", "1.0\x00"]
)
def test_nonsense_about_what_is_shown_marks_nothing(states: str) -> None:
    make_case()
    client, _ = log_in()
    for seen in ("", "x", "-1", "9" * 60):
        assert client.get("/news/", {"states": states, "seen": seen, "told": seen}).status_code == 200


def test_it_changes_nothing() -> None:
    client, _ = log_in()
    case = make_case()
    before = Review.objects.filter(pk=case.pk).values().get()
    ask(client, client.get("/"))
    assert client.post("/news/").status_code == 405
    assert Review.objects.filter(pk=case.pk).values().get() == before
