"""In a real browser: the theme that was chosen beats the system's, times are in the zone, and no policy objects."""

from typing import Any

import pytest

from actions import times
from reconciliation.models import Preferences
from tests import factories
from tests.browsing import DESKTOP, Console, let_in
from tests.desk_team.test_figures import make_sending
from tests.pages.cases import make_case

pytestmark = pytest.mark.django_db(transaction=True)
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
BAR = "getComputedStyle(document.querySelector('.chart .bars rect')).fill"


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def page(new_context: Any, base_url: str, console: Console) -> Any:
    context = new_context(viewport=DESKTOP)
    let_in(context, factories.make_person("supervisor", username="mara", first_name="Mara"), base_url)
    found = context.new_page()
    console.listen(found)
    return found


def test_figures_and_preferences_in_both_themes(page: Any, console: Console) -> None:
    review = make_case()
    assert review.intent is not None
    make_sending(review.intent, claimed_at=times.now(), result="no_answer")
    page.emulate_media(color_scheme="light")
    page.goto("/team/figures/")
    assert [page.evaluate(BACKGROUND), page.evaluate(BAR)] == ["rgb(255, 255, 255)", "rgb(18, 72, 79)"]
    assert page.get_by_role("img", name="Open cases by age").is_visible()

    page.click("text=Mara")
    page.check("text=Dark")
    page.select_option("[name=time_zone]", "Asia/Tokyo")
    page.click("text=Keep these preferences")
    page.wait_for_selector("text=It holds from now on")
    assert Preferences.objects.get().theme == "dark"
    page.goto("/team/figures/")
    assert [page.evaluate(BACKGROUND), page.evaluate(BAR)] == ["rgb(19, 22, 21)", "rgb(142, 208, 211)"]
    assert "days in Asia/Tokyo" in page.inner_text("main")

    page.emulate_media(color_scheme="dark")
    Preferences.objects.update(theme="light")
    page.set_viewport_size({"width": 390, "height": 844})
    for address in ("/team/", "/team/figures/", "/preferences/"):
        page.goto(address)
        assert page.evaluate(BACKGROUND) == "rgb(255, 255, 255)"
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert (page.evaluate("window.refused"), console.lines) == ([], [])
