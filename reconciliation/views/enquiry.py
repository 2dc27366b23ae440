"""An enquiry for the provider, ready to copy: what they need to find a request of ours, and what we ask. All from
stored fields; times in UTC. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime

from actions import money, visible
from actions.models import Attempt, Intent, Result
from reconciliation.models import LedgerEntry, Verdict
from reconciliation.views import words
from reconciliation.views.facts import Known

_ASKS = {
    Verdict.MATCH: "Your books show an entry that looks like it. Please confirm that it is this one, and final.",
    Verdict.PENDING: "Your books show it as pending. Please tell us when it is final, or that it was called off.",
    Verdict.PARTIAL: "Your books show it with a smaller amount. Please tell us what was carried out, and why.",
    Verdict.MISMATCH: "Your books show it with other details. Please tell us what was carried out, and why.",
    Verdict.AMBIGUOUS: "Several entries in your books could be it. Please tell us which of them is this request's.",
    Verdict.DUPLICATE: "Your books show it more than once. Please tell us which of the entries were carried out.",
}
_ASK = "Please tell us whether it was carried out; if so, under which id, with which amount and when."
_NEVER = "Please don't carry it out again."


def text(intent: Intent, known: Known) -> str:
    """Empty when nothing was sent: then there is nothing to ask."""
    if intent.first_maybe_sent_at is None:
        return ""
    verdict = Verdict(known.newest.verdict) if known.newest else None
    lines = [
        f"To: {_line(intent.downstream.title)}",
        f"Subject: {_line(intent.kind.title)} {_line(intent.subject)}, key {_line(intent.idempotency_key)}",
        "",
        "We sent you the request below and need to know what became of it.",
        "",
        *_details(intent, known),
        "",
        _ASKS.get(verdict, _ASK) if verdict else _ASK,
        _NEVER,
    ]
    return "\n".join(lines)


def _details(intent: Intent, known: Known) -> Iterable[str]:
    yield f"Request: {_line(intent.kind.title)}"
    yield f"Idempotency key: {_line(intent.idempotency_key)}"
    yield f"Order: {_line(intent.subject)}"
    if intent.amount_minor is not None:
        yield f"Amount: {money.describe(intent.amount_minor, intent.currency)}"
    if intent.downstream.account:
        yield f"Account: {_line(intent.downstream.account)}"
    if intent.external_id:
        yield f"Your id: {_line(intent.external_id)}"
    yield from (_sent(attempt) for attempt in known.attempts if attempt.known_result != Result.NOT_SENT)
    yield from (_entry(candidate.entry) for candidate in known.candidates)


def _sent(attempt: Attempt) -> str:
    return f"Sent: {_time(attempt.claimed_at)} ({_line(words.attempt_ended(attempt))})"


def _entry(entry: LedgerEntry) -> str:
    amount = money.describe(entry.amount_minor, entry.currency)
    booked = f", booked {_time(entry.booked_at)}" if entry.booked_at else ""
    return f"Entry in your books: {_line(entry.entry_id)}, {amount}, {entry.get_state_display()}{booked}"


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _line(text: str) -> str:
    """On one line, and with what hides made visible: it leaves the desk, and a person reads it there as well."""
    return visible.plain(" ".join(text.split()))
