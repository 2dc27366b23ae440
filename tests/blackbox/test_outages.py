"""Processes die and Redis forgets; nothing is lost and nothing happens twice."""

import os
import signal
import time

import psutil
import pytest
import redis

from tests.blackbox.agent import Agent
from tests.demo import Demo

# As processes, the product meets PostgreSQL in tests/chaos, with faults of every kind.
pytestmark = pytest.mark.either_database


def workers(demo: Demo) -> list[psutil.Process]:
    found = psutil.Process(demo.facts["pid"]).children(recursive=True)
    return [one for one in found if "worker" in one.cmdline()]


def kill_workers(demo: Demo) -> None:
    for one in workers(demo):
        os.kill(one.pid, signal.SIGKILL)


def test_a_worker_killed_between_sending_and_saving_loses_nothing(agent: Agent) -> None:
    order = agent.order("killed")
    agent.order_fault(order, "slow", seconds=2)
    intent_id = agent.propose(order).json()["id"]
    agent.wait_for_post(order)
    kill_workers(agent.demo)
    assert agent.read(intent_id)["status"] == "submitted"
    unsure = agent.wait(intent_id, ("unknown",))
    assert unsure["status_reason"] == "lease_over"
    found = agent.wait(intent_id)
    assert (found["status"], found["settled_by"]) == ("confirmed", "ledger")
    assert (len(agent.posts(order)), len(agent.booked(order))) == (1, 1)


def test_flushing_redis_loses_nothing(agent: Agent) -> None:
    client = redis.Redis.from_url(agent.demo.facts["redis_url"])
    orders = [agent.order("flush") for _ in range(8)]
    ids = []
    for order in orders:
        ids.append(agent.propose(order).json()["id"])
        client.flushall()
    assert {agent.wait(intent_id)["status"] for intent_id in ids} == {"confirmed"}
    assert [len(agent.posts(order)) for order in orders] == [1] * 8


def test_redis_killed_and_frozen_only_delays(agent: Agent) -> None:
    pid = next(
        one.pid
        for one in psutil.Process(agent.demo.facts["pid"]).children(recursive=True)
        if "redis-server" in one.name() or "redis-server" in " ".join(one.cmdline())
    )
    os.kill(pid, signal.SIGSTOP)
    try:
        order = agent.order("frozen")
        begun = time.monotonic()
        reply = agent.propose(order)
        assert reply.status_code == 201, "recording does not wait for Redis"
        assert time.monotonic() - begun < 10
        assert agent.wait(reply.json()["id"])["status"] == "confirmed"
    finally:
        os.kill(pid, signal.SIGCONT)
    os.kill(pid, signal.SIGKILL)
    order = agent.order("killed-redis")
    reply = agent.propose(order)
    assert reply.status_code == 201
    assert agent.wait(reply.json()["id"])["status"] == "confirmed"
    assert len(agent.posts(order)) == 1
