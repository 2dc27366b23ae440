"""A model's worst habit, for scripted models: whatever reads like an error or a time-out is done once more."""

import re
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from landed_client.testing import FakeLanded

READS_LIKE_AN_ERROR = re.compile(
    r"\b(error|fail(ed|ure)?|time[sd]?[ -]?out|tim(ed|ing) out|try again|retry|exception|could not|unavailable)\b",
    re.I,
)

# What may become of an action once it is sent, and how it stands when everybody has looked: as the fake scripts it.
COURSES = (("confirmed",), ("unknown", "confirmed"), ("unknown", "failed"), ("unknown",), ("failed",))


def effects(fake: FakeLanded, subject: str) -> int:
    """How many of these were or may have been done."""
    return sum(one["status"] not in ("failed", "cancelled") for one in fake.intents(subject))


class RefusesLookAlikes(FakeLanded):
    """The fake, with the look-alike policy `refuse`: what is confirmed isn't taken a second time."""

    def _answer(self, request: Any) -> Any:
        done = [row for row in self._api.rows.values() if row.status == "confirmed"]
        answer = super()._answer(request)
        if request.method != "POST" or answer.status != 201:
            return answer
        new = self._api.rows[str(answer.about)]
        same = [row.id for row in done if row.payload == new.payload]
        if not same:
            return answer
        del self._api.rows[new.id]
        shown = next(one for one in self.intents() if one["id"] == same[0])
        text = "The same was confirmed a short time ago."
        return self._api.problem(409, "already_done", text, self.now, intent=shown)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Whoever reaches for the network is found out, even where a library swallows its error."""
    reached: list[Any] = []

    def refuse(_: socket.socket, address: Any) -> None:
        reached.append(address)
        raise OSError("tests of adapters stay on this machine")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    yield reached
    assert reached == []
