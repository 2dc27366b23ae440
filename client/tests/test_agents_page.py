"""docs/agents.md, run as it stands against a real server."""

import re
from pathlib import Path
from typing import Any

from landed_client import Landed
from landed_client.testing import Faults, Server

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
STATUSES = {"held", "recorded", "submitted", "unknown", "confirmed", "failed", "cancelled"}
STEPS = {"wait", "wait_for_person", "send", "report", "done"}


def blocks() -> list[str]:
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_its_code_runs_from_top_to_bottom_and_books_once(landed_server: Server, landed_faults: Faults) -> None:
    names: dict[str, Any] = {
        "BASE": landed_server.base_url,
        "SANDBOX": landed_server.sandbox_url,
        "TOKEN": landed_server.token,
    }
    own = {order: landed_faults.new_order(order) for order in ("order-4812", "order-4813", "order-4814")}
    for code in blocks():
        ours = re.sub("order-481[234]", lambda found: own[found[0]], code)
        exec(compile(ours, str(PAGE), "exec"), names)
    assert len(landed_faults.booked(own["order-4812"])) == 1
    assert len(landed_faults.posts(own["order-4813"])) == 1
    assert names["action"].unreported is None


def test_its_example_test_is_one_that_passes(landed: Landed, landed_faults: Faults) -> None:
    (code,) = [one for one in blocks() if "def test_" in one]
    names: dict[str, Any] = {"my_agent": careless_agent}
    exec(compile(code, str(PAGE), "exec"), names)
    names["test_a_lost_answer_is_no_reason_to_pay_twice"](landed, landed_faults)


def careless_agent(landed: Landed, order: str) -> None:
    """Does what it shouldn't: whatever it is told, it goes on."""
    from landed_client import LandedError

    try:
        landed.actions.propose(kind="refund", subject=order, amount="5.00", currency="EUR", wait=1)
    except LandedError:
        return


def test_every_status_and_step_has_its_row() -> None:
    rows = set(re.findall(r"^\| `([a-z_]+)` \|", PAGE.read_text(), re.MULTILINE))
    assert rows - {"next_step"} == STATUSES | STEPS
