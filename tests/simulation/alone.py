"""The simulation without pytest: a database of its own in memory, migrated once."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.running import Stage


@contextmanager
def staged() -> Iterator[Stage]:
    """Sets Django up and yields a stage. Once per process, and before anything of the product is imported."""
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        os.environ.update(
            DJANGO_SETTINGS_MODULE="config.settings",
            LANDED_MODE="test",
            LANDED_DATA=folder,
            DATABASE_URL=f"sqlite:///{folder}/landed.sqlite3",
            REDIS_URL=f"unix://{folder}/no-redis.sock",
        )
        import django

        django.setup()
        from django.core.management import call_command

        from tests.simulation.running import stage

        call_command("migrate", verbosity=0)
        with stage() as found:
            yield found
