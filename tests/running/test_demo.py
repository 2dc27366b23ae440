"""The whole thing on one machine, and what it survives."""

import os
import signal
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from config.children import wait_until
from config.demo import cases, traffic
from tests.demo import Demo, create_database, start_demo
from tests.running.test_supervisor import is_alive


def propose(demo: Demo, **fields: Any) -> requests.Response:
    intent = {"kind": "refund", "subject": f"order-{uuid.uuid4().hex[:8]}", "amount": "12.00", "currency": "EUR"}
    headers = {
        "Authorization": f"Bearer {demo.agent_token}",
        "Idempotency-Key": f'"{uuid.uuid4()}"',
        "Prefer": "wait=15",
    }
    return requests.post(f"{demo.base_url}/api/v1/intents", json=intent | fields, headers=headers, timeout=40)


def proposals_land(demo: Demo) -> bool:
    try:
        return bool(propose(demo).json().get("status") == "confirmed")
    except (requests.RequestException, ValueError):
        return False


def find_pids(data: Path) -> list[int]:
    """Every process whose environment or command line speaks of this data folder."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            text = (folder / "environ").read_bytes() + (folder / "cmdline").read_bytes()
        except OSError:
            continue
        if str(data).encode() in text and int(folder.name) != os.getpid():
            found.append(int(folder.name))
    return found


def test_the_line_says_everything_that_a_script_needs(demo: Demo) -> None:
    assert {"base_url", "sandbox_url", "agent_token", "logins", "pid"} <= set(demo.facts)
    assert [login["role"] for login in demo.facts["logins"]] == [
        *("reviewer", "reviewer", "supervisor", "auditor", "admin", "admin")
    ]
    assert demo.facts["pid"] == demo.process.pid


def test_a_proposal_is_recorded_sent_and_confirmed(demo: Demo) -> None:
    answer = propose(demo)
    assert (answer.status_code, answer.json()["status"]) == (201, "confirmed")


def test_a_newcomer_finds_cases_of_several_sorts(demo: Demo) -> None:
    assert len({case.subject for case in cases.CASES}) == len(cases.CASES) >= 5
    assert all(case.subject.startswith("demo-") for case in cases.CASES)
    seen = requests.get(f"{demo.sandbox_url}/_control/requests", timeout=5).json()["data"]
    assert {request["order"] for request in seen} >= {"demo-order-1001", "demo-order-1003"}


def test_traffic_has_faults_but_mostly_none() -> None:
    from sandbox.faults import FAULTS

    assert set(traffic.FAULTS) <= set(FAULTS)
    assert 10 <= sum(traffic.FAULTS.values()) <= 40


@pytest.fixture(scope="module")
def doomed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    """A demo to be ill-treated."""
    data = tmp_path_factory.mktemp("doomed")
    found = start_demo(data, database_url=create_database(f"doomed_{os.getpid()}"))
    yield found
    if found.process.poll() is None:
        found.stop()


@pytest.mark.xdist_group("demo")
def test_it_survives_the_loss_of_each_part_and_stops_without_leftovers(doomed: Demo) -> None:
    data = doomed.data
    for words in ("manage.py worker", "redis-server", "manage.py clock", "granian --interface"):
        victim = min(pid for pid in find_pids(data) if words in _command(pid))
        os.kill(victim, signal.SIGKILL)
        assert wait_until(lambda: proposals_land(doomed), within_s=15), f"not without {words}"
        assert wait_until(lambda: any(words in _command(pid) for pid in find_pids(data)), within_s=6), words
    pids = find_pids(data)
    assert len(pids) >= 6
    began = time.monotonic()
    assert doomed.stop() == 0
    assert time.monotonic() - began < 6
    assert not [pid for pid in pids if is_alive(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
