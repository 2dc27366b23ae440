"""Under which request key a proposal goes out, so that a call which is repeated is not a second proposal.

What MCP itself has is no help: a repeated call has a new JSON-RPC id and a new progress token, the ids begin at the
same number in every session, and sessions end. So a key comes from what the host says about the *run* and the *step*
in the request's `_meta`, or from this process's memory of recent proposals.
"""

import hashlib
import json
import time
import unicodedata
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

# Keys that this adapter made. One that comes back in `request_key` stands for the same proposal.
_OURS: Final = "mcp-"
_MODELS: Final = "mcp-m-"
_MOST: Final = 10_000
# Longer than hosts wait for a call, and than a model needs to make it once more.
KEPT_FOR_S: Final = 600.0
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


@dataclass
class _Kept:
    key: str
    until: float | None = None


@dataclass(frozen=True)
class Key:
    """`seen`: it stands for an earlier proposal whose caller was answered."""

    text: str
    seen: bool = False


class Recent:
    """The keys of recent proposals: the very same one, made again in the same run, goes out under the same key.

    Kept without end while nobody was answered (in flight, cancelled meanwhile, no answer of Landed), and for ten
    minutes afterwards, because an answer that was given need not have reached the model: some transports don't say
    that the host went away. What is the same is what is done: kind, subject, amount, currency, params; a note may be
    worded anew. It is this process's memory of 10,000 proposals, and behind it stands the guard.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._clock = clock

    def key_for(self, run: str | None, proposal: Mapping[str, Any], otherwise: str) -> Key:
        """The key to use, from now on remembered as not answered."""
        name = _digest([run, proposal])
        kept = self._kept.get(name)
        if kept is None or (kept.until is not None and kept.until < self._clock()):
            kept = self._kept[name] = _Kept(otherwise)
        seen, kept.until = kept.until is not None, None
        self._kept.move_to_end(name)
        if len(self._kept) > _MOST:
            self._kept.popitem(last=False)
        return Key(kept.key, seen)

    def answered(self, key: str) -> None:
        for kept in self._kept.values():
            if kept.key == key:
                kept.until = self._clock() + KEPT_FOR_S

    def forget(self, key: str) -> None:
        for name in [name for name, kept in self._kept.items() if kept.key == key]:
            del self._kept[name]


def _folded(subject: str) -> str:
    """As the client compares subjects: a model that spells one differently the second time means the same."""
    return "".join(unicodedata.normalize("NFC", subject.casefold()).split())


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:40]
