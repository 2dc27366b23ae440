"""How many faults of each kind there were. Every kind is known beforehand, so that one that never came shows."""

import threading
from collections import Counter
from collections.abc import Iterable


class Tally:
    """For any number of threads."""

    def __init__(self, kinds: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter(dict.fromkeys(kinds, 0))

    def add(self, kind: str) -> None:
        with self._lock:
            assert kind in self.counts, kind
            self.counts[kind] += 1
