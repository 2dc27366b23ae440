"""Ties entries to intents: the one place where a match begins to exist."""

from datetime import datetime

from actions.models import Intent
from reconciliation.models import LedgerEntry, Match, MatchRole


def tie(entry: LedgerEntry, intent: Intent | None, role: MatchRole, *, by: str, now: datetime) -> Match:
    """What the entry is to the intent (None: to none of ours), with the entry's state and amount as judged.

    `by`: checker, or person:3. Raises IntegrityError when the entry has an active match, or the intent is settled by
    another one.
    """
    return Match.objects.create(
        entry=entry,
        intent=intent,
        role=role,
        entry_state=entry.state,
        amount_minor=entry.amount_minor,
        currency=entry.currency,
        by=by,
        at=now,
    )
