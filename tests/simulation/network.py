"""The network between the product and its downstreams: stands in for `actions.transport.send`.

Bytes that have left are on their own: whoever sent them may be frozen or dead while they arrive, within one deadline
or never.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import urlsplit

from actions.phases import Phase, Reason
from actions.transport import Call, Limits, Reply
from tests.simulation.clock import Clock
from tests.simulation.downstream import Answer, Fault, Payments
from tests.simulation.tasks import current, pause

# How often something befalls a request, of so many.
SENDING = {
    Fault.NONE: 30,
    Fault.NOT_SENT: 6,
    Fault.LOST_REQUEST: 8,
    Fault.LOST_ANSWER: 12,
    Fault.PENDING: 8,
    Fault.REFUSED: 5,
    Fault.UNAUTHORIZED: 4,
    Fault.DECLINED: 3,
    Fault.ERROR_BOOKED: 8,
    Fault.ERROR_NOT_BOOKED: 6,
    Fault.STORED_ERROR: 3,
    Fault.NOT_PROCESSED: 4,
    Fault.CONFLICT: 2,
    Fault.GARBAGE: 3,
    Fault.LESS: 2,
    Fault.TWICE: 4,
    Fault.TWICE_LOST: 2,
}
LOOKING = {"none": 80, "error": 6, "lost": 6, "garbage": 4, "not_sent": 4}


@dataclass
class Request:
    """One request whose bytes are on their way. `answer` is there once it has arrived."""

    payments: Payments
    call: Call
    by: str
    sent_at: datetime
    arrives_by: float
    fault: Fault
    lateness: float
    arrived: bool = False
    answer: Answer | None = None

    @property
    def key(self) -> str:
        return self.call.headers["Idempotency-Key"]


@dataclass
class Network:
    dice: random.Random
    clock: Clock
    payments: dict[str, Payments]
    first_byte: Callable[[Request], None]
    told: Callable[[str], None]
    calm: bool = False
    sending: dict[Fault, int] = field(default_factory=lambda: dict(SENDING))
    looking: dict[str, int] = field(default_factory=lambda: dict(LOOKING))
    in_flight: list[Request] = field(default_factory=list)

    def send(self, call: Call, limits: Limits) -> Reply:
        began = self.clock.boot()
        payments = self.payments[urlsplit(call.url).hostname or ""]
        if call.method == "GET":
            return self._look(payments, call, limits, began)
        pause("connecting")
        fault = Fault.NONE if self.calm else self._draw(self.sending)
        if fault is Fault.NOT_SENT:
            return self._unsent(Reason.CONNECT_REFUSED, began)
        if limits.send_by is not None and self.clock.boot() > limits.send_by:
            return self._unsent(Reason.TOO_LATE, began)
        if self.clock.boot() > began + limits.connect_timeout_s:
            return self._unsent(Reason.CONNECT_TIMEOUT, began)
        request = self._let_go(payments, call, limits, began, fault)
        pause("the bytes have left")
        self.arrive(request)
        pause("the request has arrived")
        return self._reply(request.answer, limits, began)

    def _draw(self, table: dict[Fault, int]) -> Fault:
        return self.dice.choices(list(table), list(table.values()))[0]

    def _let_go(self, payments: Payments, call: Call, limits: Limits, began: float, fault: Fault) -> Request:
        request = Request(
            payments=payments,
            call=call,
            by=current(),
            sent_at=self.clock.now(),
            arrives_by=began + limits.deadline_s,
            fault=fault,
            lateness=self.dice.choice((0.0, 0.0, 0.5, 1.0)),
        )
        self.told(f"{request.by}: first byte of {request.key[-6:]} to {payments.name} ({fault})")
        self.first_byte(request)
        if fault is not Fault.LOST_REQUEST:
            self.in_flight.append(request)
        return request

    def arrive(self, request: Request) -> None:
        """The downstream works on it now, whether or not anybody waits for the answer."""
        if request not in self.in_flight:
            return
        self.in_flight.remove(request)
        request.arrived = True
        request.answer = request.payments.take(
            request.call,
            sent_at=request.sent_at,
            now=self.clock.now(),
            fault=request.fault,
            lateness=request.lateness,
        )
        said = "nothing" if request.answer is None else str(request.answer.status)
        self.told(f"{request.payments.name}: {request.key[-6:]} arrived, answers {said}")

    def before(self, boot: float) -> None:
        """Time is about to move on: what must arrive before that does so, or never."""
        for request in [one for one in self.in_flight if one.arrives_by < boot]:
            if self.calm or self.dice.random() < 0.7:
                self.arrive(request)
            else:
                self.in_flight.remove(request)

    def _reply(self, answer: Answer | None, limits: Limits, began: float) -> Reply:
        if answer is None or self.clock.boot() > began + limits.deadline_s:
            return Reply(Phase.SENT, Reason.READ_TIMEOUT, None, {}, b"", self._ms(began))
        return Reply(Phase.DONE, Reason.OK, answer.status, answer.headers, answer.body, self._ms(began))

    def _unsent(self, reason: Reason, began: float) -> Reply:
        return Reply(Phase.CONNECT, reason, None, {}, b"", self._ms(began))

    def _ms(self, began: float) -> int:
        return round((self.clock.boot() - began) * 1_000)

    def _look(self, payments: Payments, call: Call, limits: Limits, began: float) -> Reply:
        pause("asking the ledger")
        trouble = "none" if self.calm else self.dice.choices(list(self.looking), list(self.looking.values()))[0]
        if trouble == "not_sent":
            return self._unsent(Reason.CONNECT_REFUSED, began)
        answer: Answer | None = payments.ledger(call.url, self.clock.now())
        away = payments.away_until is not None and self.clock.now() < payments.away_until and not self.calm
        if trouble == "error" or away:
            answer = Answer(503, b"{}")
        elif trouble == "garbage":
            answer = Answer(200, b"[")
        elif trouble == "lost":
            answer = None
        pause("the ledger has answered")
        return self._reply(answer, limits, began)
