"""What the tests of policy files share."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from actions.models import Agent, Downstream, Kind

DOCS = Path(__file__).parents[2] / "docs"


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    error: str


Apply = Callable[..., Ended]


@pytest.fixture
def apply(tmp_path: Path) -> Apply:
    """Writes `text` into a file and applies it; how that ended."""

    def run(text: str, *options: str, name: str = "policy.toml") -> Ended:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return apply_file(file, *options)

    return run


def apply_file(file: Path, *options: str) -> Ended:
    out = StringIO()
    try:
        call_command("apply_policy", str(file), *options, stdout=out)
    except CommandError as wrong:
        return Ended(wrong.returncode, out.getvalue(), str(wrong))
    return Ended(0, out.getvalue(), "")


def blocks(document: str, language: str) -> list[str]:
    """The code blocks of a document, in order."""
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / document).read_text(), re.DOTALL)


def example() -> str:
    """The complete example of docs/policy.md."""
    (found,) = [text for text in blocks("policy.md", "toml") if "[[agent]]" in text]
    return found


def stored() -> dict[str, Any]:
    """Everything that a policy file could have written, history included."""
    rows = {model.__name__: list(model.objects.order_by("pk").values()) for model in (Downstream, Kind, Agent)}
    of_agents = {agent.name: sorted(agent.kinds.values_list("name", flat=True)) for agent in Agent.objects.all()}
    return rows | {"kinds": of_agents, "history": history_counts()}


def history_counts() -> dict[str, int]:
    return {model.__name__: model.history.count() for model in (Downstream, Kind, Agent)}  # type: ignore[attr-defined]
