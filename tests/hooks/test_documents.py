"""The documents' own words: the example runs, and what they say is true."""

import re
from pathlib import Path
from typing import Any

import pytest

from actions.models import Downstream
from actions.statuses import Status
from reconciliation.models import DeliveryOutcome
from reconciliation.webhooks.applying import TRY_AFTER_S
from tests.api.calling import make_api
from tests.flow.world import Clock
from tests.hooks.hooking import make_hooks
from tests.hooks.test_services import ROWS

DOCS = Path(__file__).parents[2] / "docs"
SERVICES, WEBHOOKS = (DOCS.joinpath(name).read_text() for name in ("looking-services.md", "webhooks.md"))


@pytest.mark.django_db(transaction=True)
def test_the_example_service_looks_and_what_it_saw_is_judged(
    transactional_db: None, live: str, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    books = make_hooks(clock, look_up="service", absence_conclusive=True)
    service = make_api(books.kind, token=ROWS | {"may_read": False})
    here, gone, broken = (books.unknown() for _ in range(3))

    def statements(order: str) -> list[dict[str, Any]]:
        if order == broken.subject:
            raise OSError("the file is not there")
        row = {"reference": "r-1", "idempotency_key": here.idempotency_key, "order": order, "amount": "50.00"}
        return [row | {"currency": "EUR", "booked_at": "2026-11-29T12:00:00Z"}] if order == here.subject else []

    example: dict[str, Any] = {"statements": statements}
    for block in re.findall(r"```python\n(.*?)```", SERVICES, re.DOTALL):
        exec(block, example)
    books.later(61)
    example["look"](live, service.token, example["find"])
    assert sorted(capsys.readouterr().out.splitlines()) == sorted(
        [
            f"{here.subject} match confirmed",
            f"{gone.subject} absent unknown",
            f"{broken.subject} unavailable unknown",
        ]
    )
    books.sound(here, Status.CONFIRMED)
    example["look"](live, service.token, example["find"])
    assert capsys.readouterr().out == "", "nothing is due now"


def test_the_command_that_it_names_makes_the_token(db: None, capsys: pytest.CaptureFixture[str]) -> None:
    from django.core.management import call_command

    from actions import tokens
    from tests.factories import make_agent

    make_agent(name="ledger-service")
    (line,) = re.findall(r"`manage.py (create_token [^`]+)`", SERVICES)
    call_command(*line.split())
    token = tokens.find(capsys.readouterr().out.strip())
    assert token is not None
    assert token.scopes == {"evidence"}


def test_what_the_documents_say_of_times_and_names_is_so() -> None:
    spoken = {5: "5 s", 30: "30 s", 120: "2 min", 600: "10 min", 3_600: "1 h", 21_600: "6 h", 86_400: "24 h"}
    plan = [spoken[seconds] for seconds in TRY_AFTER_S]
    assert f"{', '.join(plan[:-1])} and {plan[-1]}" in " ".join(WEBHOOKS.split())
    for outcome in (DeliveryOutcome.UNREADABLE, DeliveryOutcome.NOTHING_OF_OURS):
        assert f"`{outcome.value}`" in WEBHOOKS
    for column in ("webhook_secret_env", "webhook_old_secret_env"):
        assert Downstream._meta.get_field(column)
        assert column in WEBHOOKS
