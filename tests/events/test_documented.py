"""docs/events.md: its example runs, and its table is the code's."""

import re
from pathlib import Path
from typing import Any

import pytest

from actions.models import TOLD, EventType
from tests.events.making import deliver, make_endpoint
from tests.events.receiving import Receiver
from tests.events.test_delivering import tell
from tests.factories import make_agent

pytestmark = pytest.mark.django_db

TEXT = Path("docs/events.md").read_text()


def test_the_example_takes_what_landed_sends_once_and_nothing_else(receiver: Receiver) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    names: dict[str, Any] = {}
    exec(example, names)
    agent = make_agent()
    _, secret = make_endpoint(agent, receiver.url)
    intent = tell(agent)
    deliver()
    (came,) = receiver.came
    read: list[str] = []
    assert names["receive"](secret, came.headers, came.body, read.append) == 204
    assert names["receive"](secret, came.headers, came.body, read.append) == 204
    assert read == [str(intent.pk)]
    assert names["receive"](secret, came.headers, came.body + b" ", read.append) == 401


def test_every_type_is_in_the_table_with_whether_a_webhook_is_sent() -> None:
    rows = dict(re.findall(r"^\| `([a-z.]+)` \|.*\|\s*(yes)?\s*\|$", TEXT, re.MULTILINE))
    assert set(rows) == set(EventType.values)
    assert {kind for kind, yes in rows.items() if yes} == set(TOLD)
