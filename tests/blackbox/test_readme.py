"""README's own words, run as they stand."""

import json
import os
import re
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from tests.blackbox.agent import Agent
from tests.blackbox.test_desk import Person
from tests.demo import Demo

# As processes, the product meets PostgreSQL in tests/chaos, with faults of every kind.
pytestmark = pytest.mark.either_database

T = TypeVar("T")
README = Path(__file__).parents[2].joinpath("README.md").read_text()


def block(language: str, having: str) -> str:
    """The code block of README that holds `having`."""
    blocks = re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)
    (found,) = [one for one in blocks if having in one]
    return str(found)


@pytest.fixture
def surroundings(demo: Demo) -> dict[str, str]:
    return {"BASE": demo.base_url, "SANDBOX": demo.sandbox_url, "TOKEN": demo.agent_token}


def test_the_walk_through_the_shell_shows_one_post_and_a_confirmed_refund(
    agent: Agent, surroundings: dict[str, str]
) -> None:
    order = agent.order("readme")
    lines = block("sh", "_control/faults").replace("order-4812", order).replace("run-17/step-3", order)
    propose, look = lines.split("# A second later")
    bash(propose, surroundings)
    look = "#" + look

    def settled() -> dict[str, Any] | None:
        (found,) = json.loads(bash(look, surroundings).splitlines()[0])["data"]
        return found if found["settled"] else None

    intent = within(settled)
    assert intent["status"] == "confirmed"
    assert intent["status_reason"] == "found_in_ledger"
    assert len(agent.posts(order)) == 1


def bash(script: str, surroundings: dict[str, str]) -> str:
    # Each curl's answer on a line of its own.
    script = 'curl() { command curl "$@"; echo; }\n' + script
    done = subprocess.run(
        ["bash", "-ec", script], env=os.environ | surroundings, capture_output=True, text=True, timeout=60, check=True
    )
    return done.stdout


def within(read: Callable[[], T | None], *, seconds: float = 40) -> T:
    """What `read` gives once it gives something."""
    end = time.monotonic() + seconds
    while (found := read()) is None:
        assert time.monotonic() < end
        time.sleep(0.3)
    return found


def test_the_agents_ten_lines_record_an_intent(agent: Agent, surroundings: dict[str, str]) -> None:
    order = agent.order("lines")
    code = block("python", "import requests").replace("order-4812", order).replace("run-17/step-3", order)
    names: dict[str, Any] = dict(surroundings)
    exec(compile(code, "README.md", "exec"), names)
    assert names["reply"].status_code == 201
    assert agent.wait(names["intent"]["id"])["status"] == "confirmed"


def test_a_newcomer_decides_one_of_the_seeded_cases(demo: Demo, agent: Agent) -> None:
    """The queue is alive from the start: whatever case is first can be opened and, if it is decidable, decided."""
    rita = Person(demo.base_url).login(demo.login("reviewer"))
    row = within(lambda: next((r for r in rita.get("/?tab=all").split("<tr")[1:] if "demo-order-1003" in r), None))
    found = re.search(r'href="(/reviews/\d+/)"', row)
    assert found
    assert "high value" in row.lower()
    rita.decide(found[1], "confirm")
    assert "It happened." in rita.get(found[1])
