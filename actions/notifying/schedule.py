"""When a delivery is tried again, and when no more. Pure."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Final

# So long after it was planned, or asked for again, a delivery is given up.
GIVE_UP_AFTER: Final = timedelta(days=2)
# Standard Webhooks' schedule (spec, "Deliverability and reliability"), as far as two days go: 47.6 hours in all.
_WAITS_S: Final = (5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 57_600)
MOST_ATTEMPTS: Final = len(_WAITS_S) + 1
# A receiver may ask for patience, not for silence.
MOST_RETRY_AFTER: Final = timedelta(hours=6)
_LONGEST_HOLD: Final = timedelta(minutes=5)


def wait(attempts: int, *, asked: timedelta | None = None) -> timedelta | None:
    """How long to wait after so many attempts (from 1); None: that was the last one.

    Shortened by up to a tenth, by chance, so that what failed together doesn't come back together. `asked`: what the
    receiver asked for.
    """
    if attempts >= MOST_ATTEMPTS:
        return None
    planned = timedelta(seconds=_WAITS_S[attempts - 1] * random.uniform(0.9, 1.0))  # noqa: S311  no secret
    return max(planned, asked or planned)


def hold(failures: int) -> timedelta:
    """How long nothing is sent to an endpoint after so many failures in a row (from 1)."""
    return min(timedelta(seconds=2 ** min(failures, 20)), _LONGEST_HOLD)


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """What the header Retry-After asks for (RFC 9110 §10.2.3), at most six hours; None without a usable one."""
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(timedelta(seconds=int(text[:9])), MOST_RETRY_AFTER)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, TypeError, OverflowError):  # the last one: numbers that no time has
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(at - now, MOST_RETRY_AFTER) if at > now else None
