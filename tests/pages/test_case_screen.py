"""The case on a real screen: all of an ordinary one at once, and nothing that was typed is lost."""

from typing import Any

import pytest

from reconciliation.models import Draft, Review
from tests import factories
from tests.browsing import DESKTOP, PHONE, let_in
from tests.flow.world import World
from tests.pages import histories
from tests.pages.test_deciding_page import high_value

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def page(new_context: Any, base_url: str) -> Any:
    context = new_context(viewport=DESKTOP)
    let_in(context, factories.make_person("reviewer", first_name="Mara"), base_url)
    return context.new_page()


def bottom(page: Any, selector: str, number: int = 0) -> float:
    box = page.locator(selector).nth(number).bounding_box()
    return float(box["y"] + box["height"])


def address(review: Review) -> str:
    return f"/reviews/{review.pk}/"


def test_all_of_an_ordinary_case_is_on_one_screen(world: World, page: Any) -> None:
    intent, review = high_value(world)
    factories.make_intent(world.kind, subject=f"{intent.subject}/line-2", family=intent.family, amount_minor=2_000)
    page.goto(address(review))
    height = DESKTOP["height"]
    assert bottom(page, "button[name=choice]", page.locator("button[name=choice]").count() - 1) < height
    assert bottom(page, ".more > summary") < height
    rows = page.locator(".happened > .timeline > li").count()
    assert rows >= 4
    assert bottom(page, ".happened > .timeline > li", rows - 1) <= height, "proposed, sent, unknown, looked"
    assert bottom(page, ".say .quote") <= height
    assert bottom(page, ".relatives li") <= height


def test_three_candidates_stand_side_by_side_and_can_be_decided_without_scrolling(world: World, page: Any) -> None:
    intent, review = high_value(world)
    for number in (2, 3):
        histories.make_entry(intent, f"re_{number}", amount_minor=50_000)
    keys = list(intent.downstream.entries.values_list("pk", flat=True))
    histories.make_look(world.read(intent), "duplicate", candidates=tuple(keys))
    page.goto(address(review))
    heads = page.locator("table.facts thead th[colspan]")
    assert heads.count() == 3
    assert len({heads.nth(number).bounding_box()["y"] for number in range(3)}) == 1
    assert bottom(page, "button[name=choice]") < DESKTOP["height"]


def test_another_look_in_place_says_what_it_saw_and_loses_nothing_that_was_typed(world: World, page: Any) -> None:
    _, review = high_value(world)
    page.goto(address(review))
    page.fill("#id_note", "half a thought")
    page.fill("[name=settled_amount]", "600.00")
    page.select_option("[name=reason]", "ledger")
    page.check("input[name=entry][value='']")
    page.fill("[name=text]", "I called them.")
    page.click("text=Check again")
    page.wait_for_selector("text=Looked just now: the ledger shows it. Found by key. Nothing has changed.")
    page.click("text=Add comment")
    page.wait_for_selector("text=Mara commented")
    assert page.input_value("#id_note") == "half a thought"
    assert page.input_value("[name=settled_amount]") == "600.00"
    assert page.input_value("[name=reason]") == "ledger"
    assert page.is_checked("input[name=entry][value='']")
    assert page.input_value("[name=text]") == ""


def test_what_was_said_about_other_facts_is_not_kept_when_a_look_shows_new_ones(world: World, page: Any) -> None:
    intent, review = high_value(world)
    page.goto(address(review))
    page.fill("#id_note", "half a thought")
    page.fill("[name=settled_amount]", "600.00")
    world.sandbox.call(
        "POST",
        "/_control/entries",
        {"order": intent.subject, "amount_minor": 1, "currency": "EUR", "idempotency_key": intent.idempotency_key},
    )
    page.click("text=Check again")
    page.wait_for_selector("text=Looked just now: the ledger shows it more than once")
    assert page.input_value("#id_note") == "half a thought"
    assert page.input_value("[name=settled_amount]") == "640.00"


def test_a_note_is_kept_while_it_is_typed(world: World, page: Any) -> None:
    _, review = high_value(world)
    page.goto(address(review))
    with page.expect_response("**/draft/") as answered:
        page.locator("#id_note").press_sequentially("half a thought")
    assert answered.value.status == 204
    assert Draft.objects.get(review=review).text == '{"comment":"","note":"half a thought"}'
    page.goto("/")
    page.goto(address(review))
    assert page.input_value("#id_note") == "half a thought"


def test_on_a_phone_the_decision_is_a_tap_away_and_nothing_is_wider_than_the_screen(world: World, page: Any) -> None:
    _, review = high_value(world)
    page.set_viewport_size(PHONE)
    page.goto(address(review))
    assert bottom(page, ".jump") == pytest.approx(PHONE["height"], abs=1)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.click(".jump")
    page.wait_for_function("document.querySelector('#decide').getBoundingClientRect().top < 200")
    assert page.locator("button[value=confirm]").bounding_box()["height"] >= 44


def test_on_paper_there_are_words_and_no_buttons(world: World, page: Any) -> None:
    _, review = high_value(world)
    page.goto(address(review))
    page.emulate_media(media="print")
    assert page.locator("main button:visible, main select:visible, main textarea:visible").count() == 0
    for words in ("unknown", "same", "It looks as if it happened.", "Sent: no answer"):
        assert page.locator(f"main >> text={words} >> visible=true").count(), words
