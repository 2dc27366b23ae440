"""What passes between the pure steps and the two clients that carry them out."""

import json
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Request:
    """One request below /api/v1. `timeout`: seconds for all of it; `wait`: of those, how long it may be held."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = None
    wait: float = 0.0
    timeout: float = 0.0

    def within(self, timeout: float) -> "Request":
        return replace(self, timeout=timeout)


@dataclass(frozen=True)
class Pause:
    """Let this many seconds pass."""

    seconds: float


@dataclass(frozen=True)
class Reply:
    """A whole answer."""

    status: int
    headers: Mapping[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        """The body; None when it is no JSON."""
        try:
            return json.loads(self.content)
        except (ValueError, RecursionError):
            return None

    @property
    def object(self) -> dict[str, Any] | None:
        found = self.json
        return found if isinstance(found, dict) else None


@dataclass(frozen=True)
class Lost:
    """No usable answer. `sent`: whether the request may have arrived. `why`: for people; holds no secrets."""

    why: str
    sent: bool = True
    retry_after: float | None = None


# A call, written once for both clients: it yields what has to be done and is handed what came of it.
Steps = Generator[Request | Pause, Reply | Lost | None, T]


def send(request: Request) -> Steps[Reply | Lost]:
    came = yield request
    assert came is not None, "a request is answered with a Reply or with Lost"
    return came


def pause(seconds: float) -> Steps[None]:
    if seconds > 0:
        yield Pause(seconds)
