"""Now, from the database: many hosts, one clock."""

from datetime import UTC, datetime
from typing import Final

from django.db import connection

_SQL: Final = {
    "postgresql": "SELECT clock_timestamp()",
    "sqlite": "SELECT strftime('%Y-%m-%dT%H:%M:%f', 'now')",
}


def now() -> datetime:
    """The database's time, aware, UTC. Read it once per transaction and hand it on."""
    with connection.cursor() as cursor:
        cursor.execute(_SQL[connection.vendor])
        (found,) = cursor.fetchone()
    if isinstance(found, str):
        return datetime.fromisoformat(found).replace(tzinfo=UTC)
    assert isinstance(found, datetime)
    return found.astimezone(UTC)
