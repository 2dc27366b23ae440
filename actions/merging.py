"""Several long streams of rows, read side by side. Pure."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, TypeVar

K = TypeVar("K")

_OVER = object()


class _Stream:
    """Groups of rows with equal keys, the next one looked at before it is taken."""

    key: Any
    _rows: Iterator[Any]

    def __init__(self, rows: Iterable[Any], key: Callable[[Any], Any]) -> None:
        self._groups = groupby(rows, key)
        self._go_on()

    def _go_on(self) -> None:
        self.key, self._rows = next(self._groups, (_OVER, iter(())))

    def take(self, key: Any) -> list[Any]:
        if self.key is _OVER or self.key != key:
            return []
        found = list(self._rows)
        self._go_on()
        return found


def side_by_side(*streams: tuple[Iterable[Any], Callable[[Any], K]]) -> Iterator[tuple[K, Sequence[list[Any]]]]:
    """Every key that any stream has, in order, with the rows that each stream has of it.

    Each stream is given with what its rows' keys are, and comes in the order of its keys. Only one key's rows are
    held at a time.
    """
    opened = [_Stream(rows, key) for rows, key in streams]
    while waiting := [stream.key for stream in opened if stream.key is not _OVER]:
        key = min(waiting)
        yield key, [stream.take(key) for stream in opened]
