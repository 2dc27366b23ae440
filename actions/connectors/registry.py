"""Finds connectors: each module of this package with a CONNECTOR, and what installed packages register."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import cast

from actions import connectors
from actions.connectors.base import Connector

GROUP = "landed.connectors"
_NOT_CONNECTORS = {"base", "registry"}


@cache
def _built_in() -> dict[str, Connector]:
    names = sorted(module.name for module in iter_modules(connectors.__path__))
    modules = [import_module(f"{connectors.__name__}.{name}") for name in names if name not in _NOT_CONNECTORS]
    found = [cast(Connector, module.CONNECTOR) for module in modules if hasattr(module, "CONNECTOR")]
    return {connector.name: connector for connector in found}


def names() -> list[str]:
    """Every connector's name. Loads no installed package: a broken one stops only its own users."""
    return sorted({*_built_in(), *(entry.name for entry in entry_points(group=GROUP))})


@cache
def get(name: str) -> Connector:
    """The connector called `name`; what is built in wins. KeyError: there is none, and these are those."""
    built_in = _built_in().get(name)
    if built_in is not None:
        return built_in
    for entry in entry_points(group=GROUP, name=name):
        return cast(Connector, entry.load())
    raise KeyError(f"There is no connector {name!r}; there are: {', '.join(names())}.")
