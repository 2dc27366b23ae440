"""How `verify_history` and `anchor_history` bear a million rows of history: `make bench-history`.

Time should grow with the rows, memory not at all.

    python -m benchmarks.history [--large N] [--database sqlite|postgresql]
"""

import sys
from typing import Any

from benchmarks import running

LARGE, MOST_MEMORY = 1_000_000, 1.15


def _compare(database: str, large: int) -> int:
    print(f"\n{database}\n\n{'':12}{'rows':>12}{'s':>9}{'CPU s':>9}{'rows/CPU s':>12}{'peak MiB':>10}")
    found = {number: _run(database, number) for number in (large // 10, large)}
    for step in ("anchor", "verify"):
        for done in found.values():
            one = done[step]
            speed = one["rows"] / max(one["cpu_s"], 0.01)
            print(
                f"{step:12}{one['rows']:>12,}{one['s']:>9.1f}{one['cpu_s']:>9.1f}{speed:>12,.0f}{one['mib']:>10.1f}"
            )
    few, many = (done["verify"]["mib"] for done in found.values())
    print(f"\nMemory: {many / few:.2f} of that for a tenth of the rows.")
    return 1 if many / few > MOST_MEMORY else 0


def _run(database: str, rows: int) -> Any:
    with running.fresh(database) as place:
        place.run("benchmarks.history_rows", "fill", rows)
        return {step: place.run("benchmarks.history_rows", step) for step in ("anchor", "verify")}


if __name__ == "__main__":
    sys.exit(running.main(_compare, __doc__, large=LARGE))
