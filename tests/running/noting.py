"""Run as a program: a worker process whose two jobs only note, in a file, that they ran.

python -m tests.running.noting FILE BEAT
"""

import os
import sys
import time
from pathlib import Path


def note(budget_s: float = 0.0) -> None:
    """Appends a line: "ring" when RQ called it, "own" when the worker looked by itself."""
    with Path(os.environ["NOTES"]).open("a") as file:
        file.write("own\n" if budget_s else "ring\n")


def note_slowly() -> None:
    time.sleep(1.5)
    note()


def main() -> None:
    import django

    django.setup()
    from config.worker import Runner

    os.environ["NOTES"] = sys.argv[1]
    runner = Runner([note], beat=Path(sys.argv[2]))
    runner.obey_signals()
    runner.run()


if __name__ == "__main__":
    main()
