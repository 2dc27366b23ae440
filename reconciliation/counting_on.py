"""How far a long command has come, on standard error: a bar on a terminal, a line for each tenth elsewhere."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from tqdm import tqdm


@contextmanager
def progress(total: int, *, unit: str, err: Any) -> Iterator[Callable[[int], object]]:
    """Gives a function that is told how many more are done. `err`: the command's standard error."""
    if err.isatty():
        with tqdm(total=total, unit=f" {unit}", unit_scale=True, file=sys.stderr, mininterval=0.5) as bar:
            yield bar.update
    else:
        yield _tenths(total, unit, err)


def _tenths(total: int, unit: str, err: Any) -> Callable[[int], None]:
    done, said = 0, 0

    def advance(number: int) -> None:
        nonlocal done, said
        done += number
        tenth = 10 if done >= total else done * 10 // total
        if tenth > said:
            said = tenth
            err.write(f"{tenth * 10} % of {total} {unit}")

    return advance
