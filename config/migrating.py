"""`migrate`, safe when several hosts or processes start at once."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.db import connection

# Any number, as long as nothing else uses it.
_LOCK = 0x1A4DED


def migrate() -> None:
    """Brings the database up to date. Whoever comes second waits and finds nothing left to do."""
    with _one_at_a_time():
        call_command("migrate", interactive=False, verbosity=0)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    if connection.vendor == "postgresql":
        # On a connection of its own: the lock lasts as long as that does.
        holder = connection.copy()
        try:
            with holder.cursor() as cursor:
                cursor.execute("SELECT pg_advisory_lock(%s)", [_LOCK])
            yield
        finally:
            holder.close()
    else:
        file = Path(settings.DATABASES["default"]["NAME"])
        file.parent.mkdir(parents=True, exist_ok=True)
        with (file.parent / f"{file.name}.migrating").open("w") as handle:
            fcntl.flock(handle, fcntl.LOCK_EX)
            yield
