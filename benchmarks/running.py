"""Runs one part of a benchmark in a process of its own, on a database that goes with it."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


def main(compare: Callable[[str, int], int], about: str | None, *, large: int) -> int:
    """Asks the command line how large and on which database, and has that compared; the worst code of both."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", type=int, default=large)
    parser.add_argument("--database", choices=["sqlite", "postgresql"])
    asked = parser.parse_args()
    chosen = [asked.database] if asked.database else ["sqlite", "postgresql"]
    return max([compare(database, asked.large) for database in chosen])


@dataclass(frozen=True)
class Place:
    folder: str
    url: str

    def run(self, module: str, *arguments: object) -> Any:
        """What the module's last line says, in JSON. Django reads its settings once, so it is a process."""
        environment = os.environ | {
            "LANDED_MODE": "test",
            "LANDED_DATA": self.folder,
            "DATABASE_URL": self.url,
            "REDIS_URL": f"unix://{self.folder}/nobody.sock",
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        done = subprocess.run(
            [sys.executable, "-m", module, *map(str, arguments)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def fresh(database: str) -> Iterator[Place]:
    """An empty database, `sqlite` or `postgresql`."""
    with tempfile.TemporaryDirectory(prefix="landed-bench-") as folder:
        if database == "sqlite":
            yield Place(folder, f"sqlite:///{Path(folder) / 'landed.sqlite3'}")
            return
        from tests.servers import PostgreSQL

        server = PostgreSQL()
        try:
            yield Place(folder, server.url_of())
        finally:
            server.stop()
