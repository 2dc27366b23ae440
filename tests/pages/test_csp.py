"""On no page, before or after any step, does the browser refuse anything or complain."""

from typing import Any

import pytest

from tests import factories
from tests.browsing import DESKTOP, Console, let_in
from tests.flow.world import World
from tests.pages.cases import make_held
from tests.pages.samples import SAMPLES
from tests.pages.test_deciding_page import high_value

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def page(new_context: Any, base_url: str, console: Console) -> Any:
    context = new_context(viewport=DESKTOP)
    let_in(context, factories.make_person("supervisor", first_name="Sofia"), base_url)
    found = context.new_page()
    console.listen(found)
    return found


def refused(page: Any) -> list[str]:
    found: list[str] = page.evaluate("window.refused")
    return found


def test_the_listener_hears_what_the_policy_refuses(page: Any, console: Console) -> None:
    """Or all the others would prove nothing."""
    page.goto("/")
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<p style=\"color: red\">x</p>')")
    page.wait_for_function("window.refused.length")
    assert "style-src" in refused(page)[0]
    assert console.lines != []


@pytest.mark.parametrize("name", [name for name in SAMPLES if name != "login"])
def test_no_page_makes_the_browser_refuse_anything(world: World, name: str, page: Any, console: Console) -> None:
    for path in SAMPLES[name](world):
        answer = page.goto(path)
        assert answer.status == 200, path
        page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true; })")
        assert (refused(page), console.lines) == ([], []), path


def test_no_step_makes_the_browser_refuse_anything(world: World, page: Any, console: Console) -> None:
    _, review = high_value(world)
    page.clock.install()
    page.goto("/?tab=all")
    make_held()
    page.clock.fast_forward(10_000)
    page.wait_for_selector("text=1 new case")
    page.goto(f"/reviews/{review.pk}/")
    page.keyboard.press("?")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    page.wait_for_selector("text=held by you until")
    page.click("text=Check again")
    page.wait_for_selector("text=Looked just now")
    page.fill("[name=text]", "I called them.")
    page.click("text=Add comment")
    page.wait_for_selector("blockquote:has-text('I called them.')")
    page.select_option("[name=reason]", "ledger")
    page.click("button[value=confirm]")
    page.wait_for_selector("text=It has taken effect")
    page.fill("[name=text]", "And told them.")
    page.click("text=Add comment")
    page.wait_for_selector("blockquote:has-text('And told them.')")
    assert (refused(page), console.lines) == ([], [])


@pytest.mark.parametrize("path", ["/nowhere/", "/reviews/999999/"])
def test_also_a_page_that_is_not_there(page: Any, console: Console, path: str) -> None:
    assert page.goto(path).status == 404
    assert (refused(page), console.besides("404")) == ([], [])
