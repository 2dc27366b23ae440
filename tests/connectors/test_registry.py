from __future__ import annotations

import sys
from importlib.metadata import EntryPoint
from types import ModuleType

import pytest

from actions.connectors import registry


@pytest.fixture
def installed(monkeypatch):
    """Entry points as installed packages would add them."""
    points: list[EntryPoint] = []

    def entry_points(*, group, name=None):
        return [point for point in points if point.group == group and name in (None, point.name)]

    monkeypatch.setattr(registry, "entry_points", entry_points)
    registry.get.cache_clear()
    yield points
    registry.get.cache_clear()


def test_what_is_built_in_is_found():
    assert "http_json" in registry.names()
    assert registry.get("http_json").name == "http_json"
    assert not {"base", "registry", "values"} & set(registry.names())


def test_an_unknown_name_names_those_there_are():
    with pytest.raises(KeyError, match=r"no connector 'nonsense'; there are: .*http_json"):
        registry.get("nonsense")


def test_an_installed_package_adds_its_own(installed, monkeypatch):
    module = ModuleType("theirs")
    module.CONNECTOR = object()
    monkeypatch.setitem(sys.modules, "theirs", module)
    installed.append(EntryPoint("theirs", "theirs:CONNECTOR", registry.GROUP))
    assert "theirs" in registry.names()
    assert registry.get("theirs") is module.CONNECTOR


def test_a_broken_package_stops_only_its_own_users(installed):
    installed.append(EntryPoint("broken", "no_such_package:CONNECTOR", registry.GROUP))
    assert "broken" in registry.names()
    assert registry.get("http_json").name == "http_json"
    with pytest.raises(ModuleNotFoundError):
        registry.get("broken")


def test_an_installed_package_can_not_replace_what_is_built_in(installed):
    installed.append(EntryPoint("http_json", "no_such_package:CONNECTOR", registry.GROUP))
    assert registry.get("http_json").name == "http_json"
