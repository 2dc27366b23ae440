"""People in front of real browsers, and the main path against the sandbox."""

from collections.abc import Callable
from typing import Any

import pytest

from tests import factories
from tests.browsing import DESKTOP, let_in
from tests.pages.conftest import world

__all__ = ["world"]

SitDown = Callable[..., Any]


@pytest.fixture
def sit_down(new_context: Any, base_url: str) -> SitDown:
    """`sit_down("Rita")`: her page, logged in, in a browser of her own. A role besides reviewer comes second."""

    def sit(name: str, role: str = "reviewer") -> Any:
        context = new_context(viewport=DESKTOP)
        let_in(context, factories.make_person(role, username=name.lower(), first_name=name), base_url)
        return context.new_page()

    return sit
