"""From the login to a decision: how much a person has to do."""

from typing import Any

import pytest

from tests import factories
from tests.browsing import DESKTOP
from tests.flow.world import World
from tests.pages.test_deciding_page import high_value

pytestmark = pytest.mark.django_db(transaction=True)

PASSWORD = "correct horse 1"


class Counting:
    """A page that counts: each field that is filled, each thing pressed."""

    def __init__(self, page: Any) -> None:
        self.page, self.actions = page, 0

    def fill(self, field: str, text: str) -> None:
        self.actions += 1
        self.page.fill(field, text)

    def choose(self, field: str, value: str) -> None:
        self.actions += 1
        self.page.select_option(field, value)

    def press(self, what: str) -> None:
        self.actions += 1
        self.page.click(what)


def test_from_the_login_to_a_decision_in_six_actions(world: World, new_context: Any) -> None:
    intent, _ = high_value(world)
    rita = factories.make_person(username="rita")
    rita.set_password(PASSWORD)
    rita.save()
    page = new_context(viewport=DESKTOP).new_page()
    page.goto("/")
    one = Counting(page)
    one.fill("[name=username]", "rita")
    one.fill("[name=password]", PASSWORD)
    one.press("main button[type=submit]")
    one.press("text=Next case")
    one.choose("#decision [name=reason]", "ledger")
    one.press("button[value=confirm]")
    page.wait_for_selector("text=It has taken effect")
    assert world.read(intent).status == "confirmed"
    assert one.actions <= 6
