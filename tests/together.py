"""Runs commands at the same time: `python -m tests.together "make a" "make b"`.

What wakes up now and then (a client that asks again, a fault that lasts a second) leaves cores to what only computes.
The first one's lines are shown as they come, those of the others when it is over. Ends with 1 if any of them failed.
"""

import subprocess
import sys
import tempfile
from typing import IO


def main(commands: list[str]) -> int:
    first, *others = commands
    logs = [tempfile.TemporaryFile() for _ in others]  # noqa: SIM115  closed with the process
    beside = [_start(command, log) for command, log in zip(others, logs, strict=True)]
    try:
        codes = [subprocess.run(first, shell=True, check=False).returncode]
        for command, process, log in zip(others, beside, logs, strict=True):
            codes.append(process.wait())
            _show(command, log)
    finally:
        for process in beside:
            process.terminate()
    return int(any(codes))


def _start(command: str, log: IO[bytes]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(command, shell=True, stdout=log, stderr=subprocess.STDOUT)


def _show(command: str, log: IO[bytes]) -> None:
    log.seek(0)
    print(command, flush=True)
    sys.stdout.buffer.write(log.read())
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
