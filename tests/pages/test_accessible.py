"""No page has a barrier that axe calls serious or critical: light and dark, on a laptop and on a phone."""

from typing import Any

import pytest

from tests import factories
from tests.browsing import DESKTOP, PHONE, find_barriers, let_in
from tests.flow.world import World
from tests.pages.samples import NOT_PAGES, SAMPLES, names_that_answer_get

pytestmark = pytest.mark.django_db(transaction=True)

# Of all that axe looks at only this depends on the colours.
COLOURS = ["color-contrast", "link-in-text-block"]


def test_every_page_has_an_address_to_be_looked_at() -> None:
    """A page that was added needs a line in tests/pages/samples.py: then the tests below look at it."""
    assert sorted({*SAMPLES, *NOT_PAGES}) == names_that_answer_get()


@pytest.mark.parametrize("name", SAMPLES)
def test_nobody_meets_a_barrier(world: World, name: str, new_context: Any, base_url: str) -> None:
    context = new_context(bypass_csp=True, reduced_motion="reduce")
    page = context.new_page()
    paths = SAMPLES[name](world)
    if name != "login":
        let_in(context, factories.make_person("supervisor", first_name="Sofia"), base_url)
    found = [barrier for path in paths for barrier in look_at(page, path)]
    if name != "login":
        let_in(context, factories.make_person("reviewer", first_name="Rita"), base_url)
        found += [barrier for path in paths for barrier in look_at(page, path, phone=False)]
    assert found == []


def look_at(page: Any, path: str, *, phone: bool = True) -> list[str]:
    """As it looks on a laptop and on a phone, light and dark; on a laptop and light alone without `phone`."""
    found = []
    page.set_viewport_size(DESKTOP)
    page.emulate_media(color_scheme="light")
    assert page.goto(path).status == 200, path
    for size, looks in (
        ((DESKTOP, ("light", "dark")), (PHONE, ("dark", "light"))) if phone else ((DESKTOP, ("light",)),)
    ):
        page.set_viewport_size(size)
        for number, colours in enumerate(looks):
            page.emulate_media(color_scheme=colours)
            barriers = find_barriers(page, rules=COLOURS if number else ())
            found += [f"{path}, {size['width']} px, {colours}: {barrier}" for barrier in barriers]
    return found


def test_the_sheet_of_keys_has_no_barrier(new_context: Any, base_url: str) -> None:
    context = new_context(bypass_csp=True)
    let_in(context, factories.make_person(), base_url)
    page = context.new_page()
    page.goto("/")
    page.keyboard.press("?")
    page.wait_for_selector("dialog[open]")
    for colours in ("light", "dark"):
        page.emulate_media(color_scheme=colours)
        assert find_barriers(page) == []
