"""docs/invariants.md names what attacks each sentence: all of that is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENT = ROOT / "docs" / "invariants.md"


def test_every_test_and_file_that_it_links_to_exists() -> None:
    links = re.findall(r"\[([^\]]+)\]\(([^)]+)\)", DOCUMENT.read_text())
    assert len(links) > 40
    for name, path in links:
        found = DOCUMENT.parent / path
        assert found.is_file(), path
        if name.startswith("test_"):
            assert f"def {name}(" in found.read_text(), f"{name} in {path}"


def test_every_function_of_the_simulation_and_of_chaos_that_it_names_exists() -> None:
    files = ("simulation/invariants.py", "simulation/actors.py", "chaos/compare.py", "chaos/compare_decisions.py")
    functions = "".join((ROOT / "tests" / name).read_text() for name in files)
    for name in re.findall(r"`([a-z_]+)`", DOCUMENT.read_text()):
        if "_" in name:
            assert f"def {name}(" in functions, name


def test_there_are_twenty_one_and_each_is_attacked() -> None:
    items = re.split(r"^\d+\. ", DOCUMENT.read_text(), flags=re.MULTILINE)[1:]
    assert len(items) == 21
    assert all("](../tests/" in item for item in items)
