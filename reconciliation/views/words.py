"""How the desk says things: amounts, spans of time, how far a request got. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from babel.core import UnknownLocaleError
from babel.numbers import get_currency_symbol

from actions import money
from actions.connectors.base import LOOK_UP_REASONS, REASONS
from actions.models import Attempt, ClosedBy, Evidence, Result
from actions.reasons import Reason
from actions.statuses import Actor
from reconciliation.views import comfort
from reconciliation.words import Verdict

NO_BREAK = "\N{NO-BREAK SPACE}"

# How far the request got, so that the reader can tell what may have happened.
PHASES: Mapping[str, str] = {
    "start": "nothing left this machine",
    "resolve": "nothing was sent: the host name was being looked up",
    "connect": "nothing was sent: the connection was being made",
    "handshake": "nothing was sent: encryption was being agreed",
    "first_byte": "part of the request may have left",
    "sent": "the request was fully sent",
    "headers": "the request was fully sent and an answer had begun",
    "body": "the request was fully sent and an answer had begun",
    "done": "the answer arrived whole",
}

RESULTS: Mapping[str, str] = {
    Result.CONFIRMED: "acknowledged",
    Result.ACCEPTED: "accepted, not finished",
    Result.REFUSED: "refused",
    Result.NOT_SENT: "not sent",
    Result.NO_ANSWER: "no answer",
}

ACTORS: Mapping[str, str] = {
    Actor.AGENT: "the agent",
    Actor.APPLICATION: "the application",
    Actor.CALLER: "the caller",
    Actor.WORKER: "a worker",
    Actor.CHECKER: "the checker",
    Actor.CLOCK: "the clock",
    Actor.REVIEWER: "a reviewer",
    Actor.ADMINISTRATOR: "an administrator",
}

DIFFERENCES: Mapping[str, str] = {
    "amount": "the amount",
    "currency": "the currency",
    "subject": "the order",
    "type": "the type of the entry",
    "settles_another": "it settles another intent already",
}

# What many looks in a row saw (`11 more looks, all too early`); the long words stand beside the first and the last.
SEEN_BRIEFLY: Mapping[str, str] = {
    Verdict.MATCH: "all showing it",
    Verdict.PENDING: "all showing it as pending",
    Verdict.PARTIAL: "all showing less",
    Verdict.MISMATCH: "all showing something else",
    Verdict.AMBIGUOUS: "all with several candidates",
    Verdict.DUPLICATE: "all showing it more than once",
    Verdict.ABSENT: "all without it",
    Verdict.TOO_EARLY: "all too early",
    Verdict.UNAVAILABLE: "none of which could read the ledger",
}


def amount(minor: int | None, currency: str) -> str:
    """64000, "EUR" → `€ 640.00`, with separators of thousands and a space that doesn't break; or as the reader's
    locale has it, when they chose one."""
    if minor is None:
        return "—"
    try:
        if locale := comfort.locale():
            return comfort.amount(minor, currency, locale)
        whole, dot, decimals = money.to_text(minor, currency).partition(".")
        symbol = get_currency_symbol(currency, locale="en")
    except (money.BadAmount, UnknownLocaleError):
        return f"{minor}{NO_BREAK}minor units of {currency or 'no currency'}"
    return f"{symbol}{NO_BREAK}{int(whole):,}{dot}{decimals}"


def span(between: timedelta) -> str:
    """`12 s`, `41 min`, `5 h`, `3 d`: one figure, as static/landed.js says it too."""
    seconds = max(0, int(between.total_seconds()))
    for size, unit, below in ((1, "s", 60), (60, "min", 3_600), (3_600, "h", 172_800)):
        if seconds < below:
            return f"{seconds // size}{NO_BREAK}{unit}"
    return f"{seconds // 86_400}{NO_BREAK}d"


def size(octets: int) -> str:
    """`812 bytes`, `41 kB`, `2.3 MB`: of a file."""
    if octets < 1_000:
        return f"{octets}{NO_BREAK}bytes"
    return f"{octets / 1_000:.0f}{NO_BREAK}kB" if octets < 1_000_000 else f"{octets / 1_000_000:.1f}{NO_BREAK}MB"


def until(when: datetime, now: datetime) -> str:
    return f"in{NO_BREAK}{span(when - now)}" if when > now else f"{span(now - when)}{NO_BREAK}late"


def attempt_ended(attempt: Attempt) -> str:
    """What came of one sending, in words: `no answer after 10 s`."""
    if attempt.closed_at is None:
        return "under way"
    if attempt.closed_by == ClosedBy.CLOCK and not attempt.late_result:
        return "whoever sent it never said how it ended"
    took = (attempt.late_at or attempt.closed_at) - attempt.claimed_at
    when = f"after {span(took)}" if took >= timedelta(seconds=1) else f"after less than 1{NO_BREAK}s"
    late = " (its answer came late)" if attempt.late_result else ""
    came = RESULTS.get(attempt.known_result, attempt.known_result)
    if attempt.known_result == Result.NO_ANSWER and attempt.http_status:
        came = "an answer that doesn't tell,"
    return f"{came} {when}{late}"


def attempt_reason(attempt: Attempt) -> str:
    code = attempt.late_reason or attempt.reason
    if not code or code in ("ok", "lease_over", attempt.known_result):
        return ""
    return REASONS.get(code, code.replace("_", " ").capitalize()).rstrip(".")


def status_reason(code: str) -> str:
    """The sentence of a `status_reason`; a code that nobody knows stays a code."""
    return Reason(code).label if code in Reason.values else REASONS.get(code, code.replace("_", " "))


def look_up_problem(code: str) -> str:
    return LOOK_UP_REASONS.get(code, code.replace("_", " "))


def evidence_words(evidence: Evidence) -> str:
    """What a person wrote, unless it was erased."""
    return f"(erased on {evidence.erased_at:%Y-%m-%d})" if evidence.erased_at else evidence.text
