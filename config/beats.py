"""A file whose age says that a process is alive: for supervisors and health checks."""

from pathlib import Path


def beat(file: Path | None) -> None:
    """Renews the file's modification time. None: nobody asked."""
    if file is not None:
        file.touch()


def seen(file: Path, *, since: float) -> bool:
    """Whether there was a beat after `since` (seconds since the epoch)."""
    try:
        return file.stat().st_mtime >= since
    except FileNotFoundError:
        return False
