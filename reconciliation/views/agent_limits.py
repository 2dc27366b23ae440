"""An agent's limits on the desk's pages: what they are and how much is used, in words."""

from dataclasses import dataclass
from datetime import datetime

from actions import limit_rules, limits, money
from actions.limits import Standing
from actions.models import Agent
from actions.pausing import Pausable


@dataclass(frozen=True)
class Line:
    """`used` and `frees` are empty for what is counted for each action, or each subject, by itself."""

    words: str
    used: str
    used_up: bool
    frees: datetime | None


def lines(row: Pausable, now: datetime) -> list[Line]:
    """One per limit; none for what is no agent."""
    return [_line(one) for one in limits.left(row, now=now)] if isinstance(row, Agent) else []


def _line(one: Standing) -> Line:
    words = limit_rules.words(one.limit)
    if one.used is None:
        return Line(words, "", False, None)
    currency = one.limit.currency
    used = money.describe(one.used, currency) if currency else str(one.used)
    return Line(words, used, one.remaining == 0, one.resets_at)
