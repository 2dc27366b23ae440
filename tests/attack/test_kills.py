"""Workers die at any moment, again and again; afterwards the sandbox's books and Landed's records agree."""

import contextlib
import os
import random
import signal
import time
from collections import Counter
from typing import Any

import psutil

from tests.blackbox.agent import SETTLED, Agent

FAULTS = ("", "", "", "lose_response", "silent", "slow", "error_500_not_booked", "error_504_booked", "reject_422")


def workers(agent: Agent) -> list[psutil.Process]:
    found = psutil.Process(agent.demo.facts["pid"]).children(recursive=True)
    return [one for one in found if "worker" in one.cmdline()]


def propose(agent: Agent, number: int, seed: random.Random) -> tuple[str, str]:
    order = agent.order(f"kills-{number}")
    if fault := FAULTS[number % len(FAULTS)]:
        agent.order_fault(order, fault, **({"seconds": 1} if fault == "slow" else {}))
    reply = agent.propose(order)
    assert reply.status_code == 201, reply.text
    time.sleep(seed.random() * 0.1)
    return order, reply.json()["id"]


def settled_or_asked(agent: Agent, intent_id: str, until: float) -> dict[str, Any]:
    while True:
        found = agent.read(intent_id)
        if found["status"] in SETTLED or found["review"]:
            return found
        assert time.monotonic() < until, f"{found['subject']}: still {found['status']} ({found['status_reason']})"
        time.sleep(0.1)


def test_after_twenty_kills_books_and_records_agree(agent: Agent) -> None:
    seed = random.Random(20)
    intents: dict[str, str] = {}
    for kill in range(20):
        for n in range(2):
            order, intent_id = propose(agent, 2 * kill + n, seed)
            intents[order] = intent_id
        time.sleep(seed.random() * 0.3)
        for one in workers(agent)[: 1 + kill % 2]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one.pid, signal.SIGKILL)
    until = time.monotonic() + 60
    seen: Counter[str] = Counter()
    for order, intent_id in intents.items():
        found = settled_or_asked(agent, intent_id, until)
        booked, posts = agent.booked(order), agent.posts(order)
        seen[found["status"]] += 1
        assert len(booked) <= 1, order
        assert {post["idempotency_key"] for post in posts} <= {found["idempotency_key"]}
        assert len(posts) <= 1, order
        if booked:
            assert found["status"] in ("confirmed", "unknown"), (order, found["status"])
        else:
            assert found["status"] != "confirmed", order
        if found["status"] == "confirmed":
            assert found["external_id"] == booked[0]["id"]
    assert sum(seen.values()) == len(intents)
    assert seen["confirmed"] > 5, seen


def test_a_worker_that_is_stopped_past_its_lease_and_goes_on_sends_nothing_twice(agent: Agent) -> None:
    orders = [agent.order("stopped") for _ in range(6)]
    stopped = workers(agent)[:1]
    for order in orders:
        agent.order_fault(order, "slow", seconds=1)
    ids = [agent.propose(order).json()["id"] for order in orders]
    agent.wait_for_post(orders[0])
    try:
        for one in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):  # tests beside this one kill workers, too
                one.suspend()
        time.sleep(7)
    finally:
        for one in stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.resume()
    until = time.monotonic() + 40
    for order, intent_id in zip(orders, ids, strict=True):
        found = settled_or_asked(agent, intent_id, until)
        assert (len(agent.posts(order)), len(agent.booked(order))) == (1, 1)
        assert found["status"] == "confirmed"
