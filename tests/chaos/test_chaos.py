"""A minute of noise on each database. The faults, the load and the people are those of `make chaos`."""

import sys
from pathlib import Path

import pytest

from config import children


@pytest.mark.parametrize("database", ["postgresql", "sqlite"])
def test_after_a_minute_of_chaos_all_books_agree(database: str, tmp_path: Path) -> None:
    """It says itself what was injected, and fails when a kind of fault never came."""
    asked = ["--seconds", "60", "--database", database, "--intents", "300", "--at-least", "100"]
    log = tmp_path / "chaos.log"
    # In a process of its own, which makes its own servers; told to end it stops all of them.
    process = children.start([sys.executable, "-u", "-m", "tests.chaos", *asked], log=log, death_signal=15)
    try:
        process.wait()
    finally:
        children.stop([process], grace_s=20)
        print(log.read_text())
    assert process.returncode == 0, f"see what it printed; again with: python -m tests.chaos {' '.join(asked)}"
