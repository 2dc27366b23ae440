"""The queue in a real browser: it renews itself under the pointer without moving, and boxes are no links."""

from typing import Any

import pytest

from actions import times
from reconciliation.models import Review
from reconciliation.reviews import claiming
from tests import factories
from tests.browsing import DESKTOP, PHONE, Console, let_in
from tests.pages.cases import make_held

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def page(new_context: Any, base_url: str, console: Console) -> Any:
    context = new_context(viewport=DESKTOP)
    let_in(context, factories.make_person(), base_url)
    found = context.new_page()
    console.listen(found)
    return found


def everything_in_place(page: Any) -> Any:
    return page.evaluate(
        "[...document.querySelectorAll('#main tr, .tabs a')].map(e => e.getBoundingClientRect().toJSON())"
    )


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["laptop", "phone"])
def test_what_colleagues_do_meanwhile_is_marked_in_place_and_moves_nothing(
    page: Any, console: Console, size: dict[str, int]
) -> None:
    kind, jon = factories.make_kind(), factories.make_person(first_name="Jon")
    cases = [make_held(kind, subject=f"order-{number}") for number in range(8)]
    page.clock.install()
    page.set_viewport_size(size)
    page.goto("/")
    page.locator("#main tbody tr").nth(2).hover()
    before = everything_in_place(page)
    claiming.claim(cases[1].pk, person=jon)
    Review.objects.filter(pk=cases[2].pk).update(closed_at=times.now(), closed_how="decision")
    make_held(kind)
    page.clock.fast_forward(10_000)
    page.wait_for_selector("text=1 new case: show")
    assert page.locator("#main tbody tr").nth(1).locator(".who").inner_text() == "now with Jon"
    assert page.locator("#main tbody tr").nth(2).locator(".who").inner_text() == "decided"
    assert page.locator("#count-unclaimed").inner_text() == "7"
    assert everything_in_place(page) == before
    claiming.release(cases[1].pk, person=jon)
    page.clock.fast_forward(10_000)
    page.wait_for_selector("text=free again")
    assert everything_in_place(page) == before
    page.click("text=1 new case: show")
    page.wait_for_selector("#main tbody tr >> text=order-7")
    assert page.locator("#main tbody tr").count() == 8
    assert console.lines == []


def test_a_box_selects_and_does_not_open_the_case_and_the_rest_of_the_row_does(page: Any) -> None:
    cases = [make_held(subject=f"order-{number}") for number in range(3)]
    page.goto("/")
    assert not page.locator("#bulk").is_visible()
    boxes = page.locator("[name=ids]")
    boxes.nth(0).check()
    boxes.nth(2).check()
    assert page.url.endswith("/")
    assert page.inner_text("#bulk .picked") == "2 cases selected"
    page.click("#bulk >> text=Assign…")
    page.wait_for_url("**/bulk/")
    assert "order-2" in page.inner_text("main")
    assert "order-1" not in page.inner_text("main")
    page.goto("/")
    page.locator("#main tbody tr").nth(1).locator(".due").click(force=True)  # the link fills the row
    page.wait_for_url(f"**/reviews/{cases[1].pk}/")


def test_filters_are_folded_away_on_a_phone_and_work(page: Any) -> None:
    make_held(factories.make_kind(name="refund", title="Refund"), subject="order-1")
    make_held(factories.make_kind(name="transfer", title="Transfer"), subject="order-2")
    page.set_viewport_size(PHONE)
    page.goto("/")
    assert not page.locator("[name=kind]").is_visible()
    page.click("text=Filters")
    page.select_option("[name=kind]", "transfer")
    page.click("form.filters button")
    page.wait_for_selector("text=Filters (1)")
    assert page.locator("#main tbody tr").count() == 1
    page.click("[aria-label='Take away the filter Kind']")
    page.locator("#main tbody tr").nth(1).wait_for()
