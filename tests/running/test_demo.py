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
from tests.demo import Demo, create_database, start_demo, stop_demo
from tests.servers import is_alive


def propose(demo: Demo) -> dict[str, Any]:
    """Proposes a refund of an order of its own; the answer."""
    intent = {"kind": "refund", "subject": f"order-{uuid.uuid4().hex[:8]}", "amount": "12.00", "currency": "EUR"}
    headers = {"Authorization": f"Bearer {demo.agent_token}", "Idempotency-Key": f'"{uuid.uuid4()}"'}
    answer = requests.post(f"{demo.base_url}/api/v1/intents", json=intent, headers=headers, timeout=10)
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


def status_of(demo: Demo, intent: dict[str, Any]) -> str:
    headers = {"Authorization": f"Bearer {demo.agent_token}"}
    answer = requests.get(f"{demo.base_url}/api/v1/intents/{intent['id']}", headers=headers, timeout=10)
    return str(answer.json()["status"])


def lands(demo: Demo, within_s: float) -> bool:
    """Whether a proposal made within that time is confirmed within that time."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            intent = propose(demo)
        except requests.RequestException:
            time.sleep(0.2)
            continue
        left_s = until - time.monotonic()
        return wait_until(lambda: status_of(demo, intent) == "confirmed", within_s=left_s, every_s=0.1)  # noqa: B023
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


@pytest.mark.either_database
def test_the_line_says_everything_that_a_script_needs(demo: Demo) -> None:
    assert {"base_url", "sandbox_url", "agent_token", "logins", "pid"} <= set(demo.facts)
    assert [login["role"] for login in demo.facts["logins"]] == [
        *("reviewer", "reviewer", "supervisor", "auditor", "admin", "admin")
    ]
    assert "manage.py demo" in _command(demo.facts["pid"])


@pytest.mark.either_database
def test_a_proposal_is_recorded_sent_and_confirmed(demo: Demo) -> None:
    assert lands(demo, within_s=15)


@pytest.mark.either_database
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
    stop_demo(found.facts["pid"])


def test_it_survives_the_loss_of_each_part_and_stops_without_leftovers(doomed: Demo) -> None:
    data = doomed.data

    def runs(words: str) -> list[int]:
        return [pid for pid in find_pids(data) if words in _command(pid)]

    for words in ("manage.py worker", "redis-server", "manage.py clock", "granian --interface"):
        os.kill(min(runs(words)), signal.SIGKILL)
        assert lands(doomed, within_s=20), f"not without {words}"
        assert wait_until(lambda: bool(runs(words)), within_s=6), words  # noqa: B023
    pids = find_pids(data)
    assert len(pids) >= 6
    began = time.monotonic()
    assert stop_demo(doomed.facts["pid"])
    assert time.monotonic() - began < 6
    assert not [pid for pid in pids if is_alive(pid)]


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""
