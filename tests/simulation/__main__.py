"""Many runs: `python -m tests.simulation [SEEDS] [--from SEED] [--only SEED]`.

Prints how it goes. Of the first seed that breaks an invariant it prints the shortest run that still does, step by
step, and ends with 1.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time

from tests.simulation.alone import staged


def main() -> int:
    asked = _arguments()
    with staged() as here:
        from tests.simulation.running import Plan, run, shrink

        gc.collect()
        gc.freeze()  # what is imported stays
        began = time.monotonic()
        seeds = [asked.only] if asked.only is not None else range(asked.begin, asked.begin + asked.seeds)
        for number, seed in enumerate(seeds, 1):
            ran = run(here, Plan(seed))
            if ran.violation is not None:
                print(f"\nseed {seed}: {ran.violation}\n\nthe shortest run that shows it:\n")
                shortest = shrink(here, ran)
                print("\n".join(shortest.trace), f"\n\n{shortest.plan}: {shortest.violation}", sep="")
                return 1
            if asked.only is not None:
                print("\n".join(ran.trace))
            elif number % 100 == 0:
                each = (time.monotonic() - began) / number
                print(f"\r{number:,} of {asked.seeds:,} seeds, {each * 1_000:.0f} ms each", end="", flush=True)
    print(f"\n{len(seeds):,} seeds, every invariant held")
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=1_000, help="how many")
    parser.add_argument("--from", dest="begin", type=int, default=0, metavar="SEED", help="the first of them")
    parser.add_argument("--only", type=int, metavar="SEED", help="this one, with everything that happens in it")
    return parser.parse_args()


sys.exit(main())
