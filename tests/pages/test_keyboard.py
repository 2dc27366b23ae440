"""Keys at the desk: they go to places and press what does no harm. None decides, and none acts on its own."""

from typing import Any

import pytest

from reconciliation.models import Check, Decision, Preferences, Review
from reconciliation.reviews import claiming
from tests import factories
from tests.browsing import DESKTOP, Console, let_in
from tests.flow.world import World
from tests.pages.cases import make_held
from tests.pages.test_deciding_page import high_value

pytestmark = pytest.mark.django_db(transaction=True)

# All that a keyboard has, without what the browser itself acts on.
EVERY_KEY = [*"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.,;-+*#!", "Delete", "F2", "Insert"]


@pytest.fixture
def person() -> Any:
    return factories.make_person(first_name="Mara")


@pytest.fixture
def console() -> Console:
    return Console()


@pytest.fixture
def page(new_context: Any, person: Any, base_url: str, console: Console) -> Any:
    context = new_context(viewport=DESKTOP)
    let_in(context, person, base_url)
    found = context.new_page()
    console.listen(found)
    return found


def focused(page: Any) -> str:
    """What has the focus, as somebody would call it."""
    return str(page.evaluate("(document.activeElement.innerText || document.activeElement.tagName).trim()"))


def selected(page: Any) -> str | None:
    found: str | None = page.evaluate(
        "(document.activeElement.closest('tr') || document.createElement('tr')).querySelector('.order')?.innerText"
    )
    return found


def test_j_and_k_move_a_selection_that_can_be_seen_and_enter_opens_it(page: Any) -> None:
    kind = factories.make_kind()
    reviews = [make_held(kind, subject=f"order-{number}") for number in range(3)]
    page.goto("/?tab=all")
    seen = []
    for key in "jjjjk":
        page.keyboard.press(key)
        seen.append(selected(page))
    assert seen == ["order-0", "order-1", "order-2", "order-2", "order-1"]
    outline = "getComputedStyle(document.activeElement, '::after').outlineStyle"
    assert page.evaluate(outline) == "solid"
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/reviews/{reviews[1].pk}/")


def test_from_a_row_that_was_ticked_one_goes_on(page: Any) -> None:
    kind = factories.make_kind()
    for number in range(3):
        make_held(kind, subject=f"order-{number}")
    page.goto("/?tab=all")
    page.locator("#main tbody input[type=checkbox]").nth(1).check()
    page.keyboard.press("j")
    assert selected(page) == "order-2"


def test_c_takes_the_case_and_r_looks_again_and_the_focus_stays(world: World, page: Any, console: Console) -> None:
    intent, review = high_value(world)
    looks = Check.objects.filter(intent=intent).count()
    page.goto(f"/reviews/{review.pk}/")
    page.keyboard.press("c")
    page.wait_for_selector("text=held by you until")
    page.keyboard.press("r")
    page.wait_for_selector("text=Looked just now")
    assert Check.objects.filter(intent=intent).count() == looks + 1
    assert "Looked just now" in page.inner_text("#said")
    assert page.evaluate("document.activeElement !== document.body")
    assert console.lines == []


def test_n_takes_the_next_case_from_the_queue_and_from_another_case(page: Any, person: Any) -> None:
    kind = factories.make_kind()
    first, second = make_held(kind), make_held(kind)
    page.goto("/?tab=all")
    page.keyboard.press("n")
    page.wait_for_url(f"**/reviews/{first.pk}/")
    page.keyboard.press("n")
    page.wait_for_url(f"**/reviews/{second.pk}/")
    assert {review.holder for review in Review.objects.all()} <= {person, None}
    assert Review.objects.get(pk=second.pk).holder == person


def test_slash_searches_and_escape_leaves_the_field(page: Any) -> None:
    page.goto("/")
    page.keyboard.press("/")
    page.keyboard.type("order-jk?n")
    assert page.input_value("#search") == "order-jk?n"
    page.keyboard.press("Escape")
    assert focused(page) != "INPUT"
    assert page.url.endswith("/")


def test_the_question_mark_shows_every_key_and_escape_closes_it(page: Any) -> None:
    make_held()
    page.goto("/?tab=all")
    page.keyboard.press("?")
    sheet = page.get_by_role("dialog", name="Keyboard shortcuts")
    sheet.wait_for()
    for key in ("j", "k", "Enter", "c", "n", "r", "/", "?"):
        assert sheet.locator("kbd", has_text=key).count() >= 1, key
    page.keyboard.press("j")  # while it is open the page behind it does nothing
    assert selected(page) is None
    page.keyboard.press("Escape")
    sheet.wait_for(state="hidden")
    page.click("text=Keyboard shortcuts")
    sheet.get_by_role("button", name="Close").click()
    sheet.wait_for(state="hidden")


def test_no_key_decides(world: World, page: Any) -> None:
    _, review = high_value(world)
    held = make_held()
    for path in (f"/reviews/{review.pk}/", f"/reviews/{held.pk}/"):
        page.goto(path)
        page.select_option("[name=reason]", index=1)
        page.evaluate("document.activeElement.blur()")
        for key in EVERY_KEY:
            if key not in "cnr":
                page.keyboard.press(key)
        pressed = page.locator("[aria-keyshortcuts]").evaluate_all(
            "all => all.filter(one => one.name === 'choice' || one.closest('#decide')).length"
        )
        assert pressed == 0
    page.wait_for_timeout(200)
    assert not Decision.objects.exists()
    assert page.url.endswith(f"/reviews/{held.pk}/")


def test_nothing_happens_while_one_types_or_holds_a_key_or_presses_it_with_another(page: Any) -> None:
    review = make_held()
    page.goto(f"/reviews/{review.pk}/")
    page.focus("[name=note]")
    page.keyboard.type("cnr?jk/")
    assert page.input_value("[name=note]") == "cnr?jk/"
    page.evaluate("document.activeElement.blur()")
    for key in ("Control+c", "Alt+c", "Meta+c", "Shift+C"):
        page.keyboard.press(key)
    page.evaluate(
        "document.body.dispatchEvent(new KeyboardEvent('keydown', {key: 'c', repeat: true, bubbles: true}))"
    )
    page.wait_for_timeout(200)
    assert Review.objects.get(pk=review.pk).holder is None
    assert page.locator("dialog[open]").count() == 0


def test_who_switched_them_off_has_none(page: Any, person: Any) -> None:
    Preferences.objects.create(person=person, shortcuts=False)
    review = make_held()
    page.goto(f"/reviews/{review.pk}/")
    for key in "cnj?/":
        page.keyboard.press(key)
    page.wait_for_timeout(200)
    assert Review.objects.get(pk=review.pk).holder is None
    assert page.locator("dialog[open]").count() == 0
    assert page.locator("[aria-keyshortcuts]").count() == 0
    assert focused(page) != "INPUT"


def test_after_a_step_the_focus_is_where_one_left_it_or_on_what_was_refused(world: World, page: Any) -> None:
    _, review = high_value(world)
    page.goto(f"/reviews/{review.pk}/")
    page.focus("text=Check again")
    page.keyboard.press("Enter")
    page.wait_for_selector("text=Looked just now")
    assert focused(page) == "Check again"
    claiming.claim(review.pk, person=factories.make_person(first_name="Jon"))
    page.select_option("[name=reason]", "ledger")
    page.focus("button[value=confirm]")
    page.keyboard.press("Enter")
    page.wait_for_selector("#main [role=alert]")
    page.wait_for_selector("[role=alert]:focus")
    assert "Jon" in page.inner_text("#said")
