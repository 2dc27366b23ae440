"""What the contract test runs against: the fake, and a real server. The latter starts once, when it is needed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import pytest

from landed_client import Action, Intent, Landed
from landed_client.testing import FakeLanded, Faults, Reviewers, Server


class World(Protocol):
    """One Landed, and whatever stands around it."""

    landed: Landed

    def new_subject(self) -> str: ...
    def lose_the_downstreams_answer(self, subject: str) -> None: ...
    def open_the_books(self, subject: str) -> None: ...
    def let_the_downstream_refuse(self, subject: str) -> None: ...
    def sendings(self, subject: str) -> int: ...
    def approve(self, intent: Intent) -> None: ...
    def reject(self, intent: Intent) -> None: ...
    def do_it(self, action: Action) -> str: ...


@dataclass
class FakeWorld:
    fake: FakeLanded
    landed: Landed
    count: int = 0

    def new_subject(self) -> str:
        self.count += 1
        return f"order-{self.count}"

    def lose_the_downstreams_answer(self, subject: str) -> None:
        self.fake.script(subject, "unknown", "confirmed", every=3)

    def open_the_books(self, subject: str) -> None:
        """The fake's script goes on by itself."""

    def let_the_downstream_refuse(self, subject: str) -> None:
        self.fake.script(subject, "failed")

    def sendings(self, subject: str) -> int:
        return self.fake.sent(subject)

    def approve(self, intent: Intent) -> None:
        self.fake.approve(intent.id)

    def reject(self, intent: Intent) -> None:
        self.fake.reject(intent.id)

    def do_it(self, action: Action) -> str:
        return f"re_{action.idempotency_key}"


@dataclass
class RealWorld:
    landed: Landed
    faults: Faults
    people: Reviewers

    def new_subject(self) -> str:
        return self.faults.new_order()

    def lose_the_downstreams_answer(self, subject: str) -> None:
        self.faults.lose_response(subject)
        # However long the test takes on the way: what is unknown stays so until the books are opened.
        self.faults.blind(subject, times=1_000)

    def open_the_books(self, subject: str) -> None:
        self.faults.over(subject)

    def let_the_downstream_refuse(self, subject: str) -> None:
        self.faults.refused(subject)

    def sendings(self, subject: str) -> int:
        return len(self.faults.posts(subject))

    def approve(self, intent: Intent) -> None:
        self.people.approve(intent.id)

    def reject(self, intent: Intent) -> None:
        self.people.reject(intent.id)

    def do_it(self, action: Action) -> str:
        done = self.faults.refund(
            action.intent.subject, amount_minor=500, currency="EUR", idempotency_key=action.idempotency_key
        )
        return str(done["id"])


@pytest.fixture(params=["fake", "real"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    if request.param == "fake":
        fake = FakeLanded()
        with fake.client() as client:
            yield FakeWorld(fake, client)
        return
    yield RealWorld(*(request.getfixturevalue(name) for name in ("landed", "landed_faults", "landed_reviewer")))


@pytest.fixture
def server(landed_server: Server) -> Server:
    return landed_server
