"""Cases that a newcomer finds in the queue and in the list: really proposed, really gone wrong."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any

from config.demo.clients import Landed, Sandbox

# The sandbox forgets a fault after so many requests; these last for the demo's life.
_ALWAYS = 1_000_000

Then = Callable[[Sandbox, str, dict[str, Any]], None]


@dataclass(frozen=True)
class Case:
    """A proposal, the faults that meet it, and what is written into the ledger by hand afterwards."""

    subject: str
    amount: str
    note: str
    reason: str
    faults: tuple[tuple[str, int], ...] = ()
    then: Then | None = None
    currency: str = "EUR"
    context: dict[str, str] = field(default_factory=dict)

    @property
    def request_key(self) -> str:
        return f"demo-case-{self.subject}"


def _books(amount_minor: int) -> Then:
    def book(sandbox: Sandbox, subject: str, intent: dict[str, Any]) -> None:
        sandbox.add_entry(
            subject,
            amount_minor=amount_minor,
            currency=intent["currency"],
            idempotency_key=intent["idempotency_key"],
        )

    return book


CASES = (
    Case("demo-order-1001", "24.90", "Parcel never arrived; carrier confirms the loss.", "lost parcel"),
    Case("demo-order-1002", "61.00", "Customer returned two of three shirts.", "return", (("reject_422", 1),)),
    Case(
        "demo-order-1003",
        "1250.00",
        "Hotel cancelled the booking, full refund promised by phone.",
        "cancelled stay",
        (("lose_response", 1),),
    ),
    Case(
        "demo-order-1004",
        "89.00",
        "Charged twice according to the customer.",
        "double charge",
        (("lose_response", 1), ("ledger_error", _ALWAYS)),
    ),
    Case(
        "demo-order-1005",
        "120.00",
        "Wrong size delivered; exchange not wanted.",
        "wrong item",
        (("error_500_not_booked", 1),),
        _books(10_000),
    ),
    Case(
        "demo-order-1006",
        "12400.00",
        "Trade fair booth cancelled in time; contract allows a full refund.",
        "cancelled event",
    ),
    Case(
        "demo-order-1007",
        "6200.00",
        "Machine returned under warranty.",
        "warranty",
        (("error_504_booked", 1),),
    ),
    Case(
        "demo-order-1008",
        "75.50",
        "Voucher was not applied at checkout.",
        "voucher",
        (("lose_response", 1),),
        _books(7_550),
    ),
)


def make_cases(landed: Landed, sandbox: Sandbox, *, known: Collection[str]) -> int:
    """Proposes the cases whose request keys are not `known` from an earlier run. Returns how many."""
    made = 0
    for number, case in enumerate(CASES, start=1):
        if case.request_key in known:
            continue
        for fault, times in case.faults:
            sandbox.order_fault(case.subject, fault, times=times)
        answer = landed.propose(
            case.request_key,
            kind="refund",
            subject=case.subject,
            amount=case.amount,
            currency=case.currency,
            params={"reason": case.reason, "customer": f"c-{400 + number}"},
            note=case.note,
            context={"run": "demo-cases", "ticket": f"T-{2000 + number}", "on_behalf_of": f"c-{400 + number}"},
        )
        answer.raise_for_status()
        if case.then is not None:
            case.then(sandbox, case.subject, answer.json())
        made += 1
    return made
