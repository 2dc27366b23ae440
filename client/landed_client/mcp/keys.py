"""Under which request key a proposal goes out, so that a call which is repeated is not a second proposal.

What MCP itself has is no help: a repeated call has a new JSON-RPC id and a new progress token, the ids begin at the
same number in every session, and sessions end. So a key comes from what the host says about the *run* and the *step*
in the request's `_meta`, or from this process's memory of proposals that nobody has been answered yet.
"""

import hashlib
import json
import unicodedata
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

# Keys that this adapter made. One that comes back in `request_key` stands for the same proposal.
_OURS: Final = "mcp-"
_MODELS: Final = "mcp-m-"
_MOST: Final = 10_000
_LONGEST_NAME: Final = 200


@dataclass(frozen=True)
class Names:
    """The keys of `_meta` that hold run and step. `run`: for hosts that start a process per run (stdio)."""

    run_meta: str = "landed/run"
    step_meta: str = "landed/step"
    run: str | None = None


@dataclass(frozen=True)
class Place:
    """Where in the host's work a call belongs, as far as the host says so."""

    run: str | None
    step: str | None

    @classmethod
    def read(cls, meta: Mapping[str, Any] | None, names: Names) -> "Place":
        found = meta or {}
        return cls(_name(found.get(names.run_meta)) or names.run, _name(found.get(names.step_meta)))


def _name(value: Any) -> str | None:
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    return text if isinstance(text, str) and 1 <= len(text) <= _LONGEST_NAME else None


def derived(place: Place, *, kind: str, subject: str | None, params: Mapping[str, Any] | None) -> str | None:
    """The key of this action in this step of this run; None unless the host names both.

    The subject is part of it, because there are hosts with one constant id for every call: two orders stay two
    intents. The amount is not: the same step with another amount is refused (`key_reused`) and not done twice.
    """
    if place.run is None or place.step is None:
        return None
    about = _folded(subject) if subject is not None else params or {}
    return f"{_OURS}s-{_digest([place.run, place.step, kind, about])}"


def of_the_model(key: str) -> str:
    """A key that a model made up is kept apart from those that programs derive; one of ours is taken as it is."""
    return key if key.startswith(_OURS) else _MODELS + key


def minted() -> str:
    return f"{_OURS}{uuid4()}"


class Unanswered:
    """Proposals whose callers have no answer so far: in flight, cancelled meanwhile, or without an answer of Landed.

    The very same proposal of the same run, made while one is in here, goes out under the same key. This is memory of
    this process, and of the last 10,000: behind it stands the guard.
    """

    def __init__(self) -> None:
        self._keys: OrderedDict[str, str] = OrderedDict()

    def key_for(self, run: str | None, proposal: Mapping[str, Any], otherwise: str) -> str:
        """The key to use, from now on remembered."""
        name = _digest([run, proposal])
        key = self._keys.setdefault(name, otherwise)
        self._keys.move_to_end(name)
        if len(self._keys) > _MOST:
            self._keys.popitem(last=False)
        return key

    def answered(self, key: str) -> None:
        for name in [name for name, kept in self._keys.items() if kept == key]:
            del self._keys[name]


def _folded(subject: str) -> str:
    """As the client compares subjects: a model that spells one differently the second time means the same."""
    return "".join(unicodedata.normalize("NFC", subject.casefold()).split())


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:40]
