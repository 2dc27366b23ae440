"""`python -m tests.chaos [--minutes N | --seconds N] [--database postgresql|sqlite] [--seed N] [--keep]`.

Exit code 0: every comparison held, every kind of fault came, the load was enough.
"""

import argparse
import random
import signal
import sys

from tests.chaos.plan import Plan

# In a minute: 10,000 in five. Noise goes on until they are there.
_A_MINUTE = 2_000


def main() -> int:
    asked = _arguments()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # also then everything is stopped
    seconds = asked.seconds or asked.minutes * 60
    intents = asked.intents or int(_A_MINUTE * seconds / 60)
    wanted = Plan(
        seconds=seconds,
        database=asked.database,
        seed=asked.seed if asked.seed is not None else random.randrange(1_000_000),
        intents=intents,
        at_least=intents if asked.at_least is None else asked.at_least,
        threads=asked.threads,
    )
    from tests.chaos.running import run

    try:
        return run(wanted, keep=asked.keep)
    except KeyboardInterrupt:
        print("stopped; everything is gone")
        return 130


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5)
    parser.add_argument("--seconds", type=float, help="instead of minutes")
    parser.add_argument("--database", choices=("postgresql", "sqlite"), default="postgresql")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--intents", type=int, help="so many, paced over the time; else 2,000 a minute")
    parser.add_argument("--at-least", type=int, help="fewer is a failure; else as many as that")
    parser.add_argument("--threads", type=int, default=12, help="of agents")
    parser.add_argument("--keep", action="store_true", help="leave the folder with all data and logs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
