"""The one clock of a run: the database's time and the machine's move together, and only when the run says so."""

from datetime import UTC, datetime, timedelta

BEGINNING = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
_BOOTED = 1_000.0


class Clock:
    """`now` stands in for `actions.times.now`, `boot` for `actions.phases.boot_clock`."""

    def __init__(self) -> None:
        self.elapsed_s = 0.0

    def now(self) -> datetime:
        # As a database keeps it: to the microsecond.
        return BEGINNING + timedelta(microseconds=round(self.elapsed_s * 1_000_000))

    def boot(self) -> float:
        return _BOOTED + self.elapsed_s

    def forward(self, seconds: float) -> None:
        assert seconds >= 0
        self.elapsed_s += seconds
