"""How many faults of each kind there were. Every kind is known beforehand, so that one that never came shows."""

import threading
from collections import Counter
from collections.abc import Iterable


class Tally:
    def __init__(self, kinds: Iterable[str]) -> None:
        self._lock = threading.Lock()
        self.counts: Counter[str] = Counter(dict.fromkeys(kinds, 0))

    def add(self, kind: str, many: int = 1) -> None:
        with self._lock:
            assert kind in self.counts, kind
            self.counts[kind] += many

    def missing(self) -> list[str]:
        return [kind for kind, many in self.counts.items() if not many]

    def table(self) -> str:
        width = max(len(kind) for kind in self.counts)
        return "\n".join(f"  {kind:<{width}}  {many:>6,}" for kind, many in self.counts.items())
