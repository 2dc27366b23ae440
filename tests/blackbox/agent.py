"""An agent, and a tester with the sandbox's controls, over HTTP alone."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.demo import Demo

SETTLED = ("confirmed", "failed", "cancelled")


@dataclass
class Agent:
    demo: Demo
    session: requests.Session = field(default_factory=requests.Session)

    def __post_init__(self) -> None:
        self.session.trust_env = False
        self.session.headers["Authorization"] = f"Bearer {self.demo.agent_token}"

    @staticmethod
    def order(name: str) -> str:
        """An order that no other test and no traffic uses."""
        return f"{name}-{uuid.uuid4().hex[:8]}"

    def propose(self, order: str, amount: str = "50.00", *, key: str | None = None, **more: Any) -> requests.Response:
        body = {"kind": "refund", "subject": order, "amount": amount, "currency": "EUR"} | more
        headers = {"Idempotency-Key": key or f"key-{order}"}
        return self.session.post(f"{self.demo.base_url}/api/v1/intents", json=body, headers=headers, timeout=40)

    def read(self, intent_id: str) -> dict[str, Any]:
        reply = self.session.get(f"{self.demo.base_url}/api/v1/intents/{intent_id}", timeout=20)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def history(self, intent_id: str) -> dict[str, Any]:
        reply = self.session.get(f"{self.demo.base_url}/api/v1/intents/{intent_id}/history", timeout=20)
        assert reply.status_code == 200, reply.text
        found: dict[str, Any] = reply.json()
        return found

    def steps(self, intent_id: str) -> list[tuple[str, str]]:
        """Where it went, and who moved it. A worker that came too late to send a byte says so and tries again: that
        is left out, how busy the machine is decides it."""
        found: list[tuple[str, str]] = []
        for step in self.history(intent_id)["transitions"]:
            if (step["from"], step["to"]) == ("submitted", "recorded"):
                found.pop()
            else:
                found.append((step["to"], step["actor"]))
        return found

    def wait(
        self, intent_id: str, statuses: Iterable[str] = SETTLED, *, review: bool = False, within_s: float = 40
    ) -> dict[str, Any]:
        """Reads until it is in one of `statuses` or, with `review`, has an open one. Fails when time is up."""
        until = time.monotonic() + within_s
        while True:
            found = self.read(intent_id)
            if found["status"] in statuses or (review and found["review"]):
                return found
            assert time.monotonic() < until, f"still {found['status']} ({found['status_reason']})"
            time.sleep(0.1)

    # the tester's side

    def order_fault(self, order: str, fault: str, **more: Any) -> None:
        body = {"order": order, "fault": fault} | more
        reply = requests.post(f"{self.demo.sandbox_url}/_control/faults", json=body, timeout=10)
        assert reply.status_code == 201, reply.text

    def posts(self, order: str) -> list[dict[str, Any]]:
        return self._data("requests", order)

    def booked(self, order: str) -> list[dict[str, Any]]:
        return self._data("ledger", order)

    def _data(self, what: str, order: str) -> list[dict[str, Any]]:
        reply = requests.get(f"{self.demo.sandbox_url}/_control/{what}", params={"order": order}, timeout=10)
        found: list[dict[str, Any]] = reply.json()["data"]
        return found

    def wait_for_post(self, order: str, *, within_s: float = 20) -> None:
        until = time.monotonic() + within_s
        while not self.posts(order):
            assert time.monotonic() < until, "no POST arrived"
            time.sleep(0.02)
