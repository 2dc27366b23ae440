"""In a real browser: login, queue, case, decision, with nothing that the content security policy objects to."""

from typing import Any

import pytest

from actions.models import Intent
from reconciliation.models import Review
from tests import factories
from tests.browsing import Console, log_in
from tests.flow.world import World
from tests.ledger.books import orphan
from tests.pages.cases import make_held
from tests.pages.test_deciding_page import high_value

PASSWORD = "correct horse 1"

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def page(new_context: Any, console: Console) -> Any:
    person = factories.make_person("reviewer", username="mara", first_name="Mara")
    person.set_password(PASSWORD)
    person.save()
    found = new_context(viewport={"width": 1440, "height": 900}).new_page()
    console.listen(found)
    log_in(found, "mara", PASSWORD)
    return found


def test_from_the_login_to_a_decision(world: World, page: Any, console: Console) -> None:
    intent, review = high_value(world)
    page.goto("/")
    page.click("#main a.row-link")
    page.wait_for_url(f"**/reviews/{review.pk}/")
    assert page.inner_text(".says") == "It looks as if it happened."
    page.fill("[name=note]", "seen with my own eyes")
    page.click("text=Take this case")
    page.wait_for_selector("text=held by you until")
    page.click("text=Check again")
    page.wait_for_selector("text=Looked just now")
    assert page.input_value("[name=note]") == "seen with my own eyes"
    page.select_option("[name=reason]", "ledger")
    page.click("button[value=confirm]")
    page.wait_for_selector("text=It has taken effect")
    assert page.inner_text(".says") == "It happened."
    assert Intent.objects.get(pk=intent.pk).status == "confirmed"
    assert page.url.endswith(f"/reviews/{review.pk}/")
    page.go_back()  # what was done on the page left no steps behind in the browser's history
    page.wait_for_selector("nav.tabs")
    assert console.lines == []


def test_a_stale_page_shows_the_new_facts_and_keeps_what_was_typed(world: World, page: Any, console: Console) -> None:
    intent, review = high_value(world)
    page.set_viewport_size({"width": 390, "height": 600})
    page.goto(f"/reviews/{review.pk}/")
    world.sandbox.call(
        "POST",
        "/_control/entries",
        {"order": intent.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": intent.idempotency_key},
    )
    page.fill("[name=note]", "a long thought")
    page.select_option("[name=reason]", "ledger")
    page.click("button[value=confirm]")
    page.wait_for_selector("text=the facts have changed since you opened this page")
    assert page.input_value("[name=note]") == "a long thought"
    assert page.locator("table.facts thead th", has_text="Ledger").count() == 2
    page.wait_for_function("document.querySelector('#main [role=alert]').getBoundingClientRect().top >= 0")
    assert console.besides("409") == []
    assert Intent.objects.get(pk=intent.pk).status == "unknown"


def test_enter_in_a_field_decides_nothing(world: World, page: Any) -> None:
    intent, review = high_value(world)
    page.goto(f"/reviews/{review.pk}/")
    page.select_option("[name=reason]", "ledger")
    page.focus("[name=settled_amount]")
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)
    assert Intent.objects.get(pk=intent.pk).status == "unknown"
    assert Review.objects.get(pk=review.pk).closed_at is None


def test_it_works_without_javascript(new_context: Any, page: Any) -> None:
    review = make_held()
    state = page.context.storage_state()
    plain = new_context(java_script_enabled=False, storage_state=state).new_page()
    plain.goto(f"/reviews/{review.pk}/")
    plain.click("text=Take this case")
    assert "held by you until" in plain.inner_text("main")
    plain.select_option("[name=reason]", "not_justified")
    plain.click("button[value=reject]")
    assert "Rejected: it is not sent." in plain.inner_text("main")


def test_new_cases_are_told_without_moving_anything(page: Any) -> None:
    make_held()
    page.goto("/")
    before = page.locator("#main tbody tr").first.bounding_box()
    make_held()
    page.evaluate("htmx.ajax('GET', document.querySelector('#pulse').getAttribute('hx-get'), {source: '#pulse'})")
    page.wait_for_selector("text=1 new case: show")
    assert page.locator("#main tbody tr").first.bounding_box() == before
    page.click("text=1 new case: show")
    page.locator("#main tbody tr").nth(1).wait_for()


def test_eighteen_cases_fit_on_a_laptop_screen(page: Any) -> None:
    kind = factories.make_kind()
    for _ in range(18):
        make_held(kind)
    page.goto("/")
    last = page.locator("tbody tr").nth(17).bounding_box()
    assert last["y"] + last["height"] <= 900
    assert last["height"] == pytest.approx(36, abs=1)


@pytest.mark.parametrize("width", [390, 768, 1440])
def test_no_page_is_wider_than_the_screen(page: Any, width: int) -> None:
    review = make_held(subject="order-" + "9" * 120, note="x" * 500)
    page.set_viewport_size({"width": width, "height": 844})
    about_an_entry = orphan(factories.make_downstream(), entry_id="re_" + "9" * 120, subject="order-" + "9" * 120)
    pages = ("/", "/intents/", f"/intents/{review.intent_id}/", "/ledger/", "/money/")
    for path in (*pages, *(f"/reviews/{case.pk}/" for case in (review, about_an_entry))):
        page.goto(path)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
