"""What is sent is sent once, and what comes by itself moves nothing that somebody points at."""

from typing import Any

import pytest

from tests import factories
from tests.browsing import DESKTOP, PHONE, let_in
from tests.flow.world import World
from tests.pages.cases import make_held
from tests.pages.test_deciding_page import high_value

pytestmark = pytest.mark.django_db(transaction=True)

POLL_S = 10


@pytest.fixture
def page(new_context: Any, base_url: str) -> Any:
    context = new_context(viewport=DESKTOP)
    let_in(context, factories.make_person(), base_url)
    return context.new_page()


def test_a_form_of_a_whole_page_is_sent_once_until_somebody_comes_back_to_it(page: Any) -> None:
    page.goto("/")
    sent: list[str] = []

    def stay(route: Any) -> None:
        sent.append(route.request.method)
        route.fulfill(status=204)  # "no content": the browser stays on the page

    page.route("**/next/", stay)
    press = "document.querySelector(\"main form[action$='/next/'] button\").click()"
    for _ in range(3):
        page.evaluate(f"{press}; {press}")
        page.wait_for_timeout(50)
    assert sent == ["POST"]
    page.evaluate("delete document.body.dataset.read")
    page.evaluate("window.dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    page.evaluate(press)
    page.wait_for_timeout(100)
    assert sent == ["POST", "POST"]


def test_a_page_that_is_shown_again_shows_what_is_true_now(page: Any) -> None:
    page.goto("/?tab=all")
    assert page.locator("#main tbody tr").count() == 0
    make_held()
    with page.expect_navigation():
        page.evaluate("window.dispatchEvent(new PageTransitionEvent('pageshow', {persisted: true}))")
    assert page.locator("#main tbody tr").count() == 1


def test_a_look_is_sent_once_says_so_and_the_button_comes_back_when_no_answer_did(world: World, page: Any) -> None:
    _, review = high_value(world)
    page.goto(f"/reviews/{review.pk}/")
    on_its_way: list[Any] = []
    page.route("**/check/", lambda route: on_its_way.append(route))  # noqa: PLW0108  Playwright asks for a function
    button = page.locator("form[action$='/check/'] button")
    with page.expect_request("**/check/"):
        button.dblclick()
    page.wait_for_selector("text=Looking…")
    page.wait_for_timeout(100)
    assert button.is_disabled()
    assert len(on_its_way) == 1
    on_its_way[0].abort()
    page.wait_for_selector("#lost:not([hidden])")
    assert button.inner_text() == "Check again"
    assert button.is_enabled()


def test_whatever_is_pressed_twice_decides_once(world: World, page: Any) -> None:
    _, review = high_value(world)
    page.goto(f"/reviews/{review.pk}/")
    page.select_option("[name=reason]", "ledger")
    posts: list[str] = []
    page.on("request", lambda request: posts.append(request.url) if request.method == "POST" else None)
    page.locator("button[value=confirm]").dblclick()
    page.wait_for_selector("text=It has taken effect")
    assert len(posts) == 1


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["laptop", "phone"])
def test_the_row_under_the_pointer_stays_where_it_is_when_news_comes(page: Any, size: dict[str, int]) -> None:
    kind = factories.make_kind()
    for _ in range(30):
        make_held(kind)
    page.clock.install()
    page.set_viewport_size(size)
    page.goto("/?tab=all")
    row = page.locator("#main tbody tr").nth(2)
    row.hover()
    before = row.bounding_box()
    make_held(kind)
    page.clock.fast_forward(POLL_S * 1000)
    page.wait_for_selector("text=1 new case")
    assert row.bounding_box() == before


def test_nor_does_it_move_when_what_comes_takes_up_room_above_it(page: Any) -> None:
    kind = factories.make_kind()
    for _ in range(40):
        make_held(kind)
    page.clock.install()
    page.goto("/?tab=all")
    page.evaluate("document.styleSheets[0].insertRule('#news a { display: block; height: 90px }')")
    row = page.locator("#main tbody tr").nth(2)
    row.hover()
    before = row.bounding_box()
    make_held(kind)
    page.clock.fast_forward(POLL_S * 1000)
    page.wait_for_selector("text=1 new case")
    assert row.bounding_box() == before
    assert page.evaluate("scrollY") > 0, "the page went on under it"


def test_nobody_looks_nothing_is_asked_and_who_comes_back_sees_the_news_at_once(page: Any) -> None:
    make_held()
    page.clock.install()
    page.goto("/?tab=all")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if request.resource_type == "xhr" else None)
    look_away = "Object.defineProperty(document, 'hidden', {configurable: true, get: () => %s});"
    page.evaluate(look_away % "true")
    for _ in range(3):
        page.clock.run_for(POLL_S * 1000)
    assert asked == []
    make_held()
    page.evaluate(look_away % "false" + "document.dispatchEvent(new Event('visibilitychange'))")
    page.wait_for_selector("text=1 new case", timeout=POLL_S * 800)  # before the next poll would be due
