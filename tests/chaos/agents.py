"""The agents: several threads that propose over the API, and repeat with the same key until they have an answer.

They write down what they attempted before they do, and what they were told.
"""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tests.chaos import asking, plan
from tests.chaos.orders import Order, Orders
from tests.chaos.seeding import BANK, PAYMENTS, REFUND, TRANSFER
from tests.chaos.tally import Tally

_PATIENCE_S = 4.0
# 503 and 429 ask to be repeated; a 5xx says nothing.
_REPEAT = frozenset({429, 500, 502, 503, 504})


@dataclass
class Attempted:
    """One proposal as its agent remembers it. `told`: every intent that an answer named; `refused`: a code."""

    order: Order
    told: list[dict[str, Any]] = field(default_factory=list)
    refused: str = ""
    reused: list[str] = field(default_factory=list)
    tries: int = 0

    @property
    def key(self) -> tuple[str, str]:
        return self.order.agent, self.order.request_key


@dataclass
class Book:
    """What all agents remember. `wrong`: what no good server would have said."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    attempted: list[Attempted] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    ordered: Counter[str] = field(default_factory=Counter)

    def note(self, order: Order) -> Attempted:
        found = Attempted(order)
        with self.lock:
            self.attempted.append(found)
        return found


class Agents:
    """`open`: may they propose something new? `over`: they finish what they have begun, and end."""

    def __init__(self, wanted: plan.Plan, machine: Any, tally: Tally) -> None:
        self.book, self.open, self.over = Book(), threading.Event(), threading.Event()
        self._wanted, self._machine, self._tally = wanted, machine, tally
        self._orders, self._draw = Orders(wanted.seed), threading.Lock()
        self._http = asking.Http(threads=wanted.threads + 4)
        self._began = time.monotonic()
        self._last_call = float("inf")
        self._threads = [threading.Thread(target=self._live, daemon=True) for _ in range(wanted.threads)]

    def begin(self) -> None:
        self._began = time.monotonic()
        self.open.set()
        for thread in self._threads:
            thread.start()

    def end(self, *, within_s: float) -> None:
        """Nothing new; whatever has no answer yet is repeated for so long."""
        self._last_call = time.monotonic() + within_s
        self.over.set()
        self.open.set()
        for thread in self._threads:
            thread.join()

    def _live(self) -> None:
        while not self.over.is_set():
            self.open.wait(1)
            if not self.open.is_set() or self.over.is_set():
                continue
            with self._draw:
                order, number = self._orders.draw(), len(self.book.attempted)
            early = self._began + number * self._wanted.seconds / self._wanted.intents - time.monotonic()
            if early > 0 and self.over.wait(early):
                return
            try:
                self._carry_out(order)
            except Exception as bug:  # a thread that ends would only make the load smaller
                with self.book.lock:
                    self.book.wrong.append(f"an agent's own bug over {order}: {bug!r}")

    # --- one order

    def _carry_out(self, order: Order) -> None:
        self._prepare(order)
        mine = self.book.note(order)
        if order.manner in ("agent_hangs_up_and_repeats", "agent_dies"):
            self._hang_up(mine)
            if order.manner == "agent_dies":
                return
        token = f"claim-{order.agent}-{order.request_key}" if order.kind == TRANSFER else None
        told = self._propose(mine, claim_token=token)
        if told is None:
            return
        if order.by_hand:
            self._write_by_hand(order, told)
        if token and told.get("attempt") and told["attempt"].get("may_send"):
            self._send_oneself(mine, told, token)
        self._misbehave(mine, token)

    def _propose(self, mine: Attempted, *, claim_token: str | None) -> dict[str, Any] | None:
        """Until there is an answer; None: it was refused, or nobody ever answered."""
        body = _body(mine.order, claim_token)

        def heard(status: int, found: dict[str, Any]) -> bool:
            return status in (200, 201) or (400 <= status < 500 and status not in _REPEAT)

        status, found = self._until(mine, body, heard)
        if status in (200, 201):
            mine.told.append(found)
            return found
        mine.refused = str(found.get("code", status)) if status else "no answer"
        if status and mine.refused != "unsettled_duplicate":
            with self.book.lock:
                self.book.wrong.append(f"{mine.key} was refused: {status} {found}")
        return None

    def _until(
        self, mine: Attempted, body: dict[str, Any], heard: Callable[[int, dict[str, Any]], bool]
    ) -> tuple[int, dict[str, Any]]:
        pause = 0.1
        while time.monotonic() < self._last_call:
            mine.tries += 1
            try:
                status, found = self._post(mine.order, body, timeout_s=_PATIENCE_S)
                if heard(status, found):
                    return status, found
            except asking.NoAnswer:
                pass
            time.sleep(pause)
            pause = min(1.0, pause * 1.5)
        return 0, {}

    def _post(self, order: Order, body: dict[str, Any], *, timeout_s: float) -> tuple[int, dict[str, Any]]:
        headers = self._headers(order) | {"Idempotency-Key": f'"{order.request_key}"'}
        return self._http.send("POST", f"{self._web()}/intents", body, timeout_s=timeout_s, headers=headers)

    def _web(self) -> str:
        return f"{random.choice(self._machine.urls)}/api/v1"

    def _headers(self, order: Order) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._machine.facts['tokens'][order.agent]}"}

    # --- at the service

    def _service(self, order: Order) -> str:
        return str(self._machine.sandboxes[PAYMENTS if order.kind == REFUND else BANK])

    def _control(self, order: Order, what: str, content: dict[str, Any]) -> bool:
        """False: the service is away; then there is no such fault this time."""
        try:
            status, _ = self._http.send("POST", f"{self._service(order)}/_control/{what}", content, timeout_s=5)
        except asking.NoAnswer:
            return False
        return status == 201

    def _prepare(self, order: Order) -> None:
        for _ in range(order.fees):
            self._control(order, "entries", _by_hand(order, amount_minor=1, type="fee"))
        for name, seconds, times in order.faults:
            content = {"order": order.subject, "fault": name, "times": times}
            if self._control(order, "faults", content | ({"seconds": seconds} if seconds else {})):
                with self.book.lock:
                    self.book.ordered[name] += times

    def _write_by_hand(self, order: Order, told: dict[str, Any]) -> None:
        less = order.amount_minor - 50 if order.by_hand == "entry_of_another_amount" else order.amount_minor
        sort = "reversal" if order.by_hand == "entry_taken_back" else "refund"
        key, why = told["idempotency_key"], {"by": "hand", "sort": order.by_hand}
        entry = _by_hand(order, amount_minor=less, type=sort, idempotency_key=key, metadata=why)
        self._control(order, "entries", entry)

    # --- carried out by the agent itself

    def _send_oneself(self, mine: Attempted, told: dict[str, Any], token: str) -> None:
        """Once, whatever comes of it; then it says what it knows."""
        order = mine.order
        body = {"order": order.subject, "amount_minor": order.amount_minor, "currency": order.currency}
        body["metadata"] = {"intent": told["id"]}
        headers = {"Idempotency-Key": told["idempotency_key"]}
        report: dict[str, Any] = {"attempt": told["attempt"]["number"], "claim_token": token, "outcome": "unknown"}
        try:
            url = f"{self._service(order)}/v1/refunds"
            status, found = self._http.send("POST", url, body, timeout_s=1.0, headers=headers)
            if status == 201 and found.get("status") == "succeeded":
                report |= {"outcome": "confirmed", "external_id": found["id"], "answer": found}
        except asking.NoAnswer:
            pass
        self._report(mine, told["id"], report)

    def _report(self, mine: Attempted, intent_id: str, report: dict[str, Any]) -> None:
        while time.monotonic() < self._last_call:
            try:
                url = f"{self._web()}/intents/{intent_id}/report"
                status, _ = self._http.send(
                    "POST", url, report, timeout_s=_PATIENCE_S, headers=self._headers(mine.order)
                )
                if status not in _REPEAT:
                    return
            except asking.NoAnswer:
                pass
            time.sleep(0.3)

    # --- badly done

    def _hang_up(self, mine: Attempted) -> None:
        """Sends, and is gone before an answer can have come."""
        token = f"claim-{mine.order.agent}-{mine.order.request_key}" if mine.order.kind == TRANSFER else None
        self._tally.add(mine.order.manner)
        with contextlib.suppress(asking.NoAnswer):
            self._post(mine.order, _body(mine.order, token), timeout_s=0.005)

    def _misbehave(self, mine: Attempted, token: str | None) -> None:
        order = mine.order
        if order.manner == "agent_repeats":
            self._tally.add(order.manner)
            self._propose(mine, claim_token=token)
        elif order.manner == "agent_uses_the_key_again":
            self._tally.add(order.manner)
            other = _body(replace(order, amount_minor=order.amount_minor + 1), token)
            status, found = self._until(mine, other, lambda status, _: status not in _REPEAT)
            if status:
                mine.reused.append(f"{status} {found.get('code')}")
        elif order.manner == "agent_rephrases":
            self._tally.add(order.manner)
            self._rephrase(order)

    def _rephrase(self, order: Order) -> None:
        """Another key, the same wish, again and again: refused while the first is not settled."""
        for number in range(1, 4):
            time.sleep(0.3 * number)
            again = replace(
                order, request_key=f"{order.request_key}-again-{number}", faults=(), by_hand="", manner=""
            )
            if self._propose(self.book.note(again), claim_token=None) is not None:
                return


def _body(order: Order, claim_token: str | None) -> dict[str, Any]:
    body: dict[str, Any] = {
        "kind": order.kind,
        "subject": order.subject,
        "amount": order.amount,
        "currency": order.currency,
    }
    return body | ({"executor": "caller", "claim_token": claim_token} if claim_token else {})


def _by_hand(order: Order, **columns: Any) -> dict[str, Any]:
    found = {"order": order.subject, "currency": order.currency, "metadata": {"by": "hand"}}
    return found | columns
