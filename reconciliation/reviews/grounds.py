"""Why a case recommends what it recommends, in plain words. Never says "failed" of what is not known."""

from collections.abc import Iterable, Sequence
from typing import Any

from actions import money, policy
from actions.models import Intent, Stop
from reconciliation.models import Check, LedgerEntry, ReasonCode, Verdict

_FIELDS = {
    "amount": "the amount",
    "currency": "the currency",
    "subject": "the order",
    "type": "the type of entry",
    "settles_another": "another intent is settled by it already",
}

_APPROVAL = {
    ReasonCode.APPROVAL: "It is above the limit for sending without approval, or no limit is set for its currency.",
    ReasonCode.DUPLICATE_PROPOSAL: "The same order has another intent that is not settled.",
    ReasonCode.LOOK_ALIKE: "The same amount was confirmed on the same order a short time ago.",
    ReasonCode.STOPPED: "Somebody placed a stop on what it concerns.",
    ReasonCode.OBJECTED: "What was looked at right before sending speaks against it.",
    ReasonCode.CONTRADICTION: "Something else on the same order is in question.",
    ReasonCode.REQUESTED: "A person asked to look at it before it is sent.",
}


def for_approval(intent: Intent, reasons: Iterable[str]) -> str:
    words = [_APPROVAL[ReasonCode(code)] for code in reasons if code in _APPROVAL]
    return "Nothing was sent. " + " ".join(words)


def for_stops(found: Sequence[Stop]) -> str:
    """Why it can't be approved, and what to do about it; empty when no stop applies."""
    if not found:
        return ""
    named = [f"the {stop.get_scope_display()} {stop.value} ({stop.reason.rstrip('.')})" for stop in found]
    if len(named) == 1:
        return f"A stop is on {named[0]}: lift it first."
    return f"Stops are on {', '.join(named[:-1])} and {named[-1]}: lift them first."


def for_outcome(intent: Intent, check: Check | None) -> str:
    """What the newest look showed, and what that means."""
    if check is None:
        return _unseen(intent)
    found = check.grounds_data
    return {
        Verdict.MATCH: _match(found),
        Verdict.PENDING: "It looks as if it is under way. The ledger shows it as pending.",
        Verdict.PARTIAL: f"The ledger shows it with a smaller amount: {_shown(found)}.",
        Verdict.MISMATCH: f"The ledger shows something else: {_differs(found)}.",
        Verdict.AMBIGUOUS: (
            f"We can't tell which entry is ours: {_count(found)} could be, and none carries this intent's key."
        ),
        Verdict.DUPLICATE: f"The ledger shows {_count(found)} with this intent's key.",
        Verdict.ABSENT: _absent(intent),
        Verdict.TOO_EARLY: "Not in the ledger yet; it is too early to tell.",
        Verdict.UNAVAILABLE: "The ledger can't be read at the moment, so we can't tell.",
    }[Verdict(check.verdict)]


def _unseen(intent: Intent) -> str:
    words = "It was sent and no usable answer came."
    if not policy.can_look_up(policy.read(intent.policy.text)):
        return f"{words} There is no ledger to look into; only people can tell."
    return f"{words} The ledger has not been looked into since."


def _match(found: dict[str, Any]) -> str:
    if found["entry_failed"]:
        return "It looks as if it did not happen. The ledger shows it with this intent's key as not carried out."
    how = "key" if found["by"] == "key" else "order, amount and time"
    return f"It looks as if it happened. The ledger shows one entry with this intent's {how}."


def _absent(intent: Intent) -> str:
    words = "The ledger does not show it, although it should by now."
    if any(not attempt.closed_by_itself for attempt in intent.attempts.all()):
        words += " Whoever was sending it never said how far it got."
    return words


def for_contradiction(intent: Intent, check: Check | None) -> str:
    said = _against(check.grounds_data, Verdict(check.verdict)) if check else "A late answer says so."
    return f"This intent is settled as {intent.status}, and new facts say otherwise. {said}"


def _against(found: dict[str, Any], verdict: Verdict) -> str:
    """What the ledger shows against how it ended."""
    shown = _shown(found)
    if found["differs"] == ["reversed"]:
        return f"The ledger shows that something was taken back: {shown}."
    if found["entry_failed"]:
        return f"The ledger says of its entry that it was not carried out: {shown}."
    return {
        Verdict.ABSENT: "The ledger does not show it, although it should by now.",
        Verdict.DUPLICATE: f"The ledger shows {_count(found)} with this intent's key: {shown}.",
        Verdict.PARTIAL: f"The ledger shows it with a smaller amount: {shown}.",
        Verdict.MISMATCH: f"The ledger shows something else ({_differs(found)}): {shown}.",
    }.get(verdict, f"It shows {shown}.")


def _count(found: dict[str, Any]) -> str:
    candidates = found["candidates"]
    number = len(candidates) if isinstance(candidates, list) else 0
    return "1 entry" if number == 1 else f"{number} entries"


def _differs(found: dict[str, Any]) -> str:
    differs = found["differs"]
    names = [_FIELDS.get(str(name), str(name)) for name in differs] if isinstance(differs, list) else []
    return ", ".join(names) + (" differs" if len(names) == 1 and names[0].startswith("the ") else "")


def _shown(found: dict[str, Any]) -> str:
    rows = LedgerEntry.objects.filter(pk__in=found["candidates"])
    parts = [money.describe(row.amount_minor, row.currency) for row in rows]
    return ", ".join(parts) or "an entry"
