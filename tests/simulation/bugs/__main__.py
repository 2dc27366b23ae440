"""The table of deliberate bugs: `python -m tests.simulation.bugs [--most SEEDS] [NAME…]`. 1 if one is missed."""

from __future__ import annotations

import argparse
import gc
import sys

from tests.simulation.alone import staged


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation.bugs", description=__doc__)
    parser.add_argument("names", nargs="*", help="these only")
    parser.add_argument("--most", type=int, default=2_000, metavar="SEEDS", help="so many seeds for each")
    asked = parser.parse_args()
    missed = 0
    with staged() as here:
        from tests.simulation.bugs.hunting import BUGS, hunt

        gc.collect()
        gc.freeze()
        print(f"{'bug':<26} {'seeds':>5}  the invariant that broke")
        for name in asked.names or BUGS:
            found = hunt(here, BUGS[name], most=asked.most)
            missed += found.found is None
            broke = found.found.violation if found.found is not None else None
            print(f"{name:<26} {found.seeds:>5}  {broke.name if broke else 'NOT FOUND'}", flush=True)
    print(f"{len(asked.names or BUGS)} bugs, {missed} missed")
    return 1 if missed else 0


sys.exit(main())
