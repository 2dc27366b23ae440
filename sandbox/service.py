"""What the threads of one running service share."""

import threading
from dataclasses import dataclass, field

from sandbox.delivery import Deliver, send_whole
from sandbox.listener import Listener
from sandbox.store import Store
from sandbox.wire import Response


@dataclass(frozen=True)
class Answer:
    """A response and how it is to leave the socket; `seconds` belong to the fault."""

    response: Response
    deliver: Deliver = send_whole
    seconds: float = 0


class KeysInUse:
    """Idempotency keys of POSTs still running. In memory only: a restart ends whatever ran."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: set[str] = set()

    def take(self, key: str) -> bool:
        with self._lock:
            if key in self._keys:
                return False
            self._keys.add(key)
            return True

    def release(self, key: str) -> None:
        with self._lock:
            self._keys.discard(key)


@dataclass(frozen=True)
class Service:
    store: Store
    listener: Listener
    keys_in_use: KeysInUse = field(default_factory=KeysInUse)
    webhook_bell: threading.Event = field(default_factory=threading.Event)
