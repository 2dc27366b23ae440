"""The documents name whatever there is, and their examples work."""

import importlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actions.connectors import contract, registry
from actions.connectors.http_json.config import SCHEMA
from actions.models import Downstream, Kind
from actions.policy_files.tables import TABLES, fields_of
from tests.factories import make_kind
from tests.policy_files.conftest import DOCS, Apply, blocks

pytestmark = pytest.mark.either_database

CONNECTORS = (DOCS / "connectors.md").read_text()


@pytest.mark.parametrize("name", registry.names())
def test_a_registered_connector_has_a_section(name: str) -> None:
    assert f"\n## `{name}`\n" in CONNECTORS


@pytest.mark.parametrize("table", TABLES)
def test_every_key_of_a_policy_file_is_listed(table: str) -> None:
    text = (DOCS / "policy.md").read_text()
    (line,) = [line for line in text.splitlines() if line.startswith(f"| `[[{table}]]`")]
    assert sorted(line.split("|")[2].split()) == sorted(f"`{key}`" for key in fields_of(table))


def test_every_setting_of_http_json_is_explained() -> None:
    text = CONNECTORS.split("## `http_json`")[1].split("## One of your own")[0]
    assert [name for name in _settings(SCHEMA) if f"`{name}`" not in text and f"`{name} = " not in text] == []


def _settings(schema: Any) -> Iterator[str]:
    for name, inner in schema.get("properties", {}).items():
        yield name
        yield from _settings(inner)
        yield from _settings(inner.get("items", {}))


@pytest.mark.django_db
def test_the_sandbox_is_integrated_as_explained(apply: Apply) -> None:
    (text,) = [text for text in blocks("connectors.md", "toml") if "[[downstream]]" in text]
    done = apply(text)
    assert done.code == 0, done.error
    assert "known_errors" in Downstream.objects.get().config


# An installed package, made of nothing but what the document says.


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A folder for sys.path in which the document's package is installed, as pip would leave it."""
    module, test = blocks("connectors.md", "python")
    (points,) = [text for text in blocks("connectors.md", "toml") if "entry-points" in text]
    _, target = points.strip().splitlines()[1].split(" = ")
    site = tmp_path / "site"
    info = site / "tiny_pay-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "tiny_pay.py").write_text(module)
    (tmp_path / "test_tiny_pay.py").write_text(test)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: tiny_pay\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[landed.connectors]\ntiny_pay = {target.strip(chr(34))}\n")
    return site


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(site))
    importlib.invalidate_caches()
    registry.get.cache_clear()
    yield
    registry.get.cache_clear()
    sys.modules.pop("tiny_pay", None)


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("holds", contract.CHECKS, ids=contract.name_of)
def test_an_installed_package_keeps_the_contract(holds: contract.Check) -> None:
    assert "tiny_pay" in registry.names()
    holds(registry.get("tiny_pay"))


def test_a_package_runs_the_contract_in_tests_of_its_own(site: Path) -> None:
    """Without Django's settings, without Landed's conftest: as in a repository of its own."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DJANGO", "PYTEST"))}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull),
            *("--rootdir", site.parent, site.parent / "test_tiny_pay.py"),
        ],
        cwd=site.parent,
        env=environment | {"PYTHONPATH": f"{DOCS.parent}{os.pathsep}{site}"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert f"{len(contract.CHECKS)} passed" in done.stdout, done.stdout + done.stderr


@pytest.mark.django_db
@pytest.mark.usefixtures("installed")
def test_a_policy_file_can_use_an_installed_connector(apply: Apply) -> None:
    make_kind()
    text = (
        '[[downstream]]\nname = "tiny"\ntitle = "Tiny"\nconnector = "tiny_pay"\nbase_url = "https://tiny.example"\n'
    )
    assert apply(text).code == 0
    refused = apply(text + "config = { nonsense = 1 }\n").error
    assert "[[downstream]] tiny, config: nonsense: there is nothing to set" in refused
    assert Kind.objects.count() == 1
