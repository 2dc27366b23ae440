"""`FakeLanded`: a Landed in memory that keeps the rules which agents can see. Time passes when somebody waits."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import httpx

from landed_client.aclient import AsyncLanded
from landed_client.client import Landed
from landed_client.retrying import Setting
from landed_client.testing.fake_api import Answer, Api
from landed_client.testing.fake_rows import Row

_URL: Final = "http://landed.invalid"
_TOKEN: Final = "fake-token"  # noqa: S105  it opens nothing


@dataclass(frozen=True)
class FakeKind:
    """A kind of action. `approve_above`: from more than that on a person has to approve."""

    name: str
    executors: tuple[str, ...] = ("landed", "caller")
    approve_above: Decimal | None = None
    required: tuple[str, ...] = ()


# The same as the demo's.
KINDS: Final = (
    FakeKind("refund", ("landed",), Decimal(10_000)),
    FakeKind("transfer", ("landed", "caller"), Decimal(5_000), ("payee",)),
)


class FakeLanded(httpx.BaseTransport, httpx.AsyncBaseTransport):
    """Answers both clients as the server does, without a network.

    What Landed sends itself is confirmed a tenth of a second later, unless `script` says otherwise for its subject.
    `client()` and `async_client()` share the fake's time: their pauses pass at once. `requests` is what arrived.
    """

    def __init__(self, kinds: Sequence[FakeKind] = KINDS) -> None:
        self.now = 0.0
        self.requests: list[tuple[str, str]] = []
        self._api = Api({kind.name: kind for kind in kinds})
        self._lost: list[bool] = []
        self._lock = threading.RLock()

    # --- clients

    def client(self, *, timeout: float = 30.0) -> Landed:
        return Landed(_URL, _TOKEN, transport=self, setting=self._setting(timeout), sleep=self.pass_time)

    def async_client(self, *, timeout: float = 30.0) -> AsyncLanded:
        async def sleep(seconds: float) -> None:
            self.pass_time(seconds)

        return AsyncLanded(_URL, _TOKEN, transport=self, setting=self._setting(timeout), sleep=sleep)

    def _setting(self, timeout: float) -> Setting:
        return Setting(timeout=timeout, clock=lambda: self.now, jitter=lambda: 0.5)

    # --- what the test decides

    def script(self, subject: str, *statuses: str, every: float = 1.0) -> None:
        """What becomes of the next intents on this subject once sent, one status each `every` seconds.

        `"unknown", "confirmed"` is a lost response that is found in the ledger; `"unknown"` alone stays open.
        """
        with self._lock:
            self._api.scripts[subject] = (statuses, every)

    def lose_answers(self, count: int = 1, *, arrived: bool = True) -> None:
        """The next answers of Landed itself are lost, after the request was carried out or, without, before it."""
        with self._lock:
            self._lost += [arrived] * count

    def approve(self, intent_id: str) -> None:
        """A person lets a held one be sent."""
        with self._lock:
            self._api.approve(self._row(intent_id, "held"), self.now)

    def reject(self, intent_id: str) -> None:
        """A person withdraws a held one for good."""
        with self._lock:
            self._row(intent_id, "held").move("cancelled", self.now, reason="rejected")

    def settle(self, intent_id: str, status: str) -> None:
        """A person or the books establish what became of an unknown one: `confirmed` or `failed`."""
        with self._lock:
            row = self._row(intent_id, "unknown")
            row.settled_by = "decision"
            row.move(status, self.now, reason="decided")

    def pass_time(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds
            self._api.catch_up(self.now)

    def intents(self, subject: str | None = None) -> list[dict[str, Any]]:
        """All of them as the API shows them, oldest first."""
        with self._lock:
            return self._api.shown(self.now, subject)

    def sent(self, subject: str) -> int:
        """How many sendings there were of this subject."""
        with self._lock:
            return sum(row.attempts for row in self._api.rows.values() if row.subject == subject)

    def _row(self, intent_id: str, status: str) -> Row:
        row = self._api.rows[intent_id]
        if row.status != status:
            raise AssertionError(f"{intent_id} is {row.status}, not {status}")
        return row

    # --- as httpx's transport

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        request.read()
        return self._handle(request)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        await request.aread()
        return self._handle(request)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self.requests.append((request.method, request.url.path))
            arrived = self._lost.pop(0) if self._lost else None
            if arrived is False:
                raise httpx.ConnectError("the fake was told to be away", request=request)
            answer = self._answer(request)
            if arrived is True:
                raise httpx.ReadError("the fake was told to lose this answer", request=request)
            return httpx.Response(answer.status, headers=answer.headers, json=answer.body, request=request)

    def _answer(self, request: httpx.Request) -> Answer:
        if request.headers.get("authorization") != f"Bearer {_TOKEN}":
            return self._api.problem(401, "unauthenticated", "No valid token was sent.", self.now)
        answer = self._api.answer(request, self.now)
        held = self._api.hold(request, answer, self.now)
        if held > self.now:
            self.now = held
            answer = self._api.again(request, answer, self.now)
        return answer
