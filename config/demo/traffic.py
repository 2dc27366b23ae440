"""A light stream of proposals, most of them without trouble. Runs as a process of its own, over HTTP only.

LANDED_DEMO_URL, LANDED_DEMO_SANDBOX_URL, LANDED_DEMO_TOKEN (never in the arguments, where others could read it).
"""

import logging
import os
import random
import time
import uuid

import requests

from config.demo.clients import Landed, Sandbox

log = logging.getLogger("traffic")

_EVERY_S = (3.5, 6.0)
# How often, in a hundred proposals, which fault is ordered for it.
FAULTS = {
    "lose_response": 7,
    "slow": 4,
    "error_500_booked": 4,
    "error_500_not_booked": 3,
    "reject_422": 4,
    "too_many_429": 3,
    "reset": 2,
    "cut_body": 2,
    "pending": 2,
    "pending_then_failed": 1,
}
_REASONS = ("late delivery", "damaged", "wrong item", "cancelled", "double charge", "goodwill")


def choose_fault(dice: random.Random) -> str | None:
    throw = dice.uniform(0, 100)
    for fault, share in FAULTS.items():
        throw -= share
        if throw < 0:
            return fault
    return None


def choose_amount(dice: random.Random) -> str:
    """Mostly small, now and then above the limit for reviews."""
    euros = dice.uniform(520, 2_400) if dice.random() < 0.04 else dice.uniform(4, 180)
    return f"{euros:.2f}"


def propose_one(landed: Landed, sandbox: Sandbox, dice: random.Random) -> None:
    subject = f"demo-{uuid.uuid4().hex[:10]}"
    fault = choose_fault(dice)
    if fault is not None:
        sandbox.order_fault(subject, fault)
    customer = f"c-{dice.randrange(1000, 9999)}"
    answer = landed.propose(
        f"traffic-{subject}",
        kind="refund",
        subject=subject,
        amount=choose_amount(dice),
        currency=dice.choices(["EUR", "USD"], [9, 1])[0],
        params={"reason": dice.choice(_REASONS), "customer": customer},
        context={"run": "demo-traffic", "on_behalf_of": customer},
    )
    if answer.status_code >= 400:
        log.warning("%s was answered %s: %s", subject, answer.status_code, answer.text[:300])


def main() -> None:
    logging.basicConfig(level="INFO", format="%(asctime)s %(levelname)s %(name)s %(message)s")
    landed = Landed(os.environ["LANDED_DEMO_URL"], os.environ["LANDED_DEMO_TOKEN"])
    sandbox = Sandbox(os.environ["LANDED_DEMO_SANDBOX_URL"])
    dice = random.Random()  # noqa: S311  nothing secret about it
    while True:
        try:
            propose_one(landed, sandbox, dice)
        except requests.RequestException as away:
            # Whatever was restarted comes back; traffic waits for it.
            log.warning("%s", away)
        time.sleep(dice.uniform(*_EVERY_S))


if __name__ == "__main__":
    main()
