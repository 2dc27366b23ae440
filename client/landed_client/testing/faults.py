"""Faults of the sandbox payments service, by order; and what it really saw and booked."""

import time
import uuid
from typing import Any

import httpx


class Faults:
    """The sandbox's control desk. A fault hits the next request for its order, or the next `times`."""

    def __init__(self, sandbox_url: str) -> None:
        self._http = httpx.Client(base_url=sandbox_url, timeout=30, trust_env=False)

    def close(self) -> None:
        self._http.close()

    @staticmethod
    def new_order(name: str = "order") -> str:
        """One that no other test uses."""
        return f"{name}-{uuid.uuid4().hex[:10]}"

    def order(self, order: str, fault: str, *, times: int = 1, seconds: float | None = None) -> None:
        """Any fault of the sandbox by its name; see `names`."""
        body = {"order": order, "fault": fault, "times": times} | ({} if seconds is None else {"seconds": seconds})
        self._post("/_control/faults", body)

    @property
    def names(self) -> dict[str, str]:
        """Every fault and what it does."""
        found: dict[str, str] = self._http.get("/_control/faults").raise_for_status().json()["valid"]
        return found

    # --- it happened, and nobody was told

    def lose_response(self, order: str) -> None:
        """Booked; the connection closes without a byte."""
        self.order(order, "lose_response")

    def reset(self, order: str) -> None:
        """Booked; the connection is reset."""
        self.order(order, "reset")

    def silent(self, order: str) -> None:
        """Booked; no answer ever comes."""
        self.order(order, "silent")

    def cut_body(self, order: str) -> None:
        """Booked; the answer breaks off."""
        self.order(order, "cut_body")

    def booked_500(self, order: str) -> None:
        """Booked; answered with 500."""
        self.order(order, "error_500_booked")

    def booked_504(self, order: str) -> None:
        """Booked; a proxy answers with 504."""
        self.order(order, "error_504_booked")

    # --- it did not happen

    def unbooked_500(self, order: str) -> None:
        """Not booked; answered with 500, which looks the same as `booked_500`."""
        self.order(order, "error_500_not_booked")

    def refused(self, order: str) -> None:
        """Not booked; refused for good."""
        self.order(order, "reject_422")

    # --- later

    def pending(self, order: str) -> None:
        """Accepted, and not finished."""
        self.order(order, "pending")

    def blind(self, order: str, times: int = 1) -> None:
        """The ledger can't be read, so what is unknown stays so for longer."""
        self.order(order, "ledger_error", times=times)

    def over(self, order: str) -> None:
        """Takes back every fault that the order still waits for."""
        self._http.delete("/_control/faults", params={"order": order}).raise_for_status()

    # --- what really happened

    def posts(self, order: str) -> list[dict[str, Any]]:
        """Every POST that arrived for this order, with times and keys."""
        return self._data("/_control/requests", order)

    def booked(self, order: str) -> list[dict[str, Any]]:
        """Every ledger entry of this order, whatever the ledger's lag."""
        return self._data("/_control/ledger", order)

    def wait_for_post(self, order: str, *, within_s: float = 20.0) -> None:
        until = time.monotonic() + within_s
        while not self.posts(order):
            if time.monotonic() > until:
                raise AssertionError(f"no POST for {order} arrived within {within_s} s")
            time.sleep(0.05)

    def refund(self, order: str, *, amount_minor: int, currency: str, idempotency_key: str) -> dict[str, Any]:
        """What a caller who executes does itself: one refund. Raises httpx's exceptions, as any client would."""
        body = {"order": order, "amount_minor": amount_minor, "currency": currency}
        reply = self._http.post("/v1/refunds", json=body, headers={"Idempotency-Key": idempotency_key})
        found: dict[str, Any] = reply.raise_for_status().json()
        return found

    def _post(self, path: str, body: dict[str, Any]) -> None:
        reply = self._http.post(path, json=body)
        if reply.is_error:
            raise ValueError(f"the sandbox refuses {body}: {reply.text}")

    def _data(self, path: str, order: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._http.get(path, params={"order": order}).raise_for_status().json()["data"]
        return found
