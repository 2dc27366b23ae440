from collections.abc import Iterator
from typing import Any

import pytest

from actions import times
from tests.events.receiving import Receiver, receiving
from tests.flow.world import Clock


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    with receiving() as found:
        settings.LANDED_PRIVATE_RECEIVERS = [found.place]
        yield found


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock(times.now)
    monkeypatch.setattr(times, "now", found)
    return found
