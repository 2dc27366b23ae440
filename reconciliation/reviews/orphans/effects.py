"""What a decision about an entry does, once it takes effect."""

from datetime import datetime

from actions import history, money
from actions.errors import BadDecision
from actions.models import Evidence, EvidenceKind, Intent, Observed
from reconciliation import orphans, ties
from reconciliation.models import (
    Choice,
    ClosedHow,
    Decision,
    LedgerEntry,
    Match,
    MatchRole,
    Review,
)
from reconciliation.reviews import differences, effects, opening, voiding
from reconciliation.reviews.orphans.planning import Follows, plan
from reconciliation.reviews.orphans.rows import keep

# Something else explains it by now, or nothing moved. Not "for now": that is about an intent not settled yet.
_EXPLAINED = ("tied", "answered", "nothing_moved")


def carry_out(row: Decision, entry: LedgerEntry, intent: Intent | None, now: datetime) -> None:
    """Puts the decision into effect; the caller holds the locks of intent, case and entry.

    Raises BadDecision when the entry is no orphan any more: a look, an answer or a webhook was faster.
    """
    if orphans.explained(entry.pk) in _EXPLAINED:
        raise BadDecision("Something explains this entry by now, or it was not carried out; nothing was decided.")
    # Judged before, in another state. What settles an intent is never released here.
    earlier = Match.objects.filter(entry=entry, released_at__isnull=True).exclude(role=MatchRole.SETTLES)
    earlier.update(released_at=now, released_by=f"person:{row.person_id}")
    if intent is None:
        ties.tie(entry, None, MatchRole.NOT_OURS, by=f"person:{row.person_id}", now=now)
    else:
        follows = plan(entry, intent)[0] if row.choice == Choice.LINK else Follows.DUPLICATE
        assert follows is not None
        _EFFECTS[follows](row, entry, intent, now)
    voiding.about(row, Choice.EFFECT, row.person, now=now)
    closed = Review.objects.filter(pk=row.review_id, closed_at__isnull=True)
    closed.update(closed_at=now, closed_how=ClosedHow.DECISION, lease_until=None)


def _grounds(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> Evidence:
    """What the intent's own history keeps of the decision. The note stays with the case."""
    said = {
        "case": row.review_id,
        "decision": row.pk,
        "choice": str(row.choice),
        "reason": str(row.reason),
        "entry": entry.entry_id,
        "amount": money.describe(entry.amount_minor, entry.currency),
    }
    return keep(intent.pk, said, EvidenceKind.OUTSIDE, row.person_id, now)


def _confirm(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    who, seen_as = f"person:{row.person_id}", _grounds(row, entry, intent, now)
    moved = effects.settle_by(entry, intent, row, by=who, grounds=[seen_as], now=now)
    # Its own case has nothing left to ask.
    opening.close(moved, ClosedHow.DECISION, now=now)


def _write_down(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    kept = _grounds(row, entry, intent, now)
    history.observe(intent.pk, Observed.TIED, by=f"person:{row.person_id}", evidence=[kept], at=now)


def _settle(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    kept = _grounds(row, entry, intent, now)
    effects.settle_by(entry, intent, row, by=f"person:{row.person_id}", grounds=[kept], now=now)


def _duplicate(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    ties.tie(entry, intent, MatchRole.DUPLICATE, by=f"person:{row.person_id}", now=now)
    differences.put_down(intent, row, differences.left_of(entry), now)
    _write_down(row, entry, intent, now)


def _taken_back(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    ties.tie(entry, intent, MatchRole.KNOWN, by=f"person:{row.person_id}", now=now)
    differences.put_down(intent, row, differences.left_of(entry), now)
    _write_down(row, entry, intent, now)


def _dispute(row: Decision, entry: LedgerEntry, intent: Intent, now: datetime) -> None:
    ties.tie(entry, intent, MatchRole.KNOWN, by=f"person:{row.person_id}", now=now)
    _write_down(row, entry, intent, now)
    review = opening.dispute(intent, now=now)
    shows = money.describe(entry.amount_minor, entry.currency)
    review.grounds = f"This intent is settled as failed. A person says that a ledger entry of {shows} is its own."
    review.save(update_fields=["grounds"])


_EFFECTS = {
    Follows.CONFIRM: _confirm,
    Follows.TIE: _settle,
    Follows.DUPLICATE: _duplicate,
    Follows.DISPUTE: _dispute,
    Follows.TAKEN_BACK: _taken_back,
}
