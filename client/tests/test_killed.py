"""A process that dies between the claim and its report: nobody says anything, and it is unknown, not done twice."""

import os
import signal
import subprocess
import sys

import pytest

from landed_client import AlreadyDone, Landed, MayHaveHappened
from landed_client.testing import Faults, Server

AGENT = """
import sys, time
from landed_client import Landed
from landed_client.testing import Faults
base_url, sandbox_url, token, order = sys.argv[1:]
landed, faults = Landed(base_url, token), Faults(sandbox_url)
with landed.executing(kind="transfer", subject=order, amount="5.00", currency="EUR", params={"payee": "anna"},
                      request_key=f"run-{order}", lease_s=5) as action:
    faults.refund(order, amount_minor=500, currency="EUR", idempotency_key=action.idempotency_key)
    print("sent", flush=True)
    time.sleep(60)
"""


def test_a_killed_agent_leaves_unknown_and_the_resumed_one_gets_the_outcome(
    landed_server: Server, landed: Landed, landed_faults: Faults
) -> None:
    order = landed_faults.new_order("killed")
    arguments = (landed_server.base_url, landed_server.sandbox_url, landed_server.token, order)
    agent = subprocess.Popen([sys.executable, "-c", AGENT, *arguments], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    assert agent.stdout.readline() == "sent\n"
    os.kill(agent.pid, signal.SIGKILL)
    agent.wait()
    agent.stdout.close()

    def resume() -> None:
        with landed.executing(
            kind="transfer",
            subject=order,
            amount="5.00",
            currency="EUR",
            params={"payee": "anna"},
            request_key=f"run-{order}",
        ):
            raise AssertionError("this body must not run again")

    with pytest.raises(MayHaveHappened) as too_early:
        resume()
    assert too_early.value.intent is not None
    done = landed.actions.wait(too_early.value.intent.id, timeout=40)
    assert (done.outcome, done.settled_by) == ("confirmed", "ledger")
    steps = [one["to"] for one in landed.actions.history(done.id)["transitions"]]
    assert steps == ["submitted", "unknown", "confirmed"]
    with pytest.raises(AlreadyDone):
        resume()
    assert len(landed_faults.posts(order)) == 1
