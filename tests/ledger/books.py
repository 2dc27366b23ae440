"""Steps and rows for tests about the books."""

from datetime import timedelta
from typing import Any

from django.contrib.auth.models import User

from actions import times, transitions
from actions.models import Downstream, Intent, Kind
from actions.statuses import Actor, Status
from reconciliation import look_back, orphans
from reconciliation import sweep as reconciliation_sweep
from reconciliation.models import Choice, DecisionReason, LedgerEntry, Purpose, Review
from reconciliation.reviews import orphans as deciding
from tests import factories

_numbers = iter(range(1, 1_000_000))
LONG_AGO = timedelta(hours=2)


def make_entry(downstream: Downstream, **columns: Any) -> LedgerEntry:
    """An effect of 50.00 EUR that nobody knows, seen long enough ago."""
    then = times.now() - LONG_AGO
    found: dict[str, Any] = {
        "downstream": downstream,
        "entry_id": f"re_{next(_numbers)}",
        "role": "effect",
        "state": "final",
        "subject": "order-x",
        "amount_minor": 5_000,
        "currency": "EUR",
        "booked_at": then,
        "first_seen_at": then,
        "last_seen_at": then,
        "explain_at": then,
    }
    return LedgerEntry.objects.create(**(found | columns))


def settle(intent: Intent, to: Status, **columns: Any) -> Intent:
    """A submitted intent as its answer would end it."""
    return transitions.apply(
        intent.pk,
        expected=Status(intent.status),
        to=to,
        actor=Actor.WORKER,
        actor_id="worker:test/1",
        reason="closed",
        settled_by="answer",
        **columns,
    )


def confirmed(kind: Kind, **columns: Any) -> Intent:
    intent = factories.make_intent(kind, to=Status.SUBMITTED, first_maybe_sent_at=times.now(), **columns)
    return settle(intent, Status.CONFIRMED, settled_amount_minor=intent.amount_minor, settled_currency="EUR")


def failed(kind: Kind, **columns: Any) -> Intent:
    return settle(
        factories.make_intent(kind, to=Status.SUBMITTED, first_maybe_sent_at=times.now(), **columns), Status.FAILED
    )


def sweep() -> None:
    reconciliation_sweep.sweep()


def case_of(entry: LedgerEntry) -> Review | None:
    """The open case about an entry."""
    return Review.objects.filter(entry=entry, purpose=Purpose.ENTRY, closed_at=None).first()


def orphan(downstream: Downstream, **columns: Any) -> Review:
    entry = make_entry(downstream, **columns)
    orphans.due(times.now())
    assert orphans.open_case(entry.pk)
    found = case_of(entry)
    assert found is not None
    return found


def decide(
    review: Review, person: User, choice: Choice, intent: Intent | None = None, **more: Any
) -> deciding.Decided:
    """Decides as the page would: with what it shows now."""
    entry = LedgerEntry.objects.get(pk=review.entry_id)
    intent = Intent.objects.select_related("policy").get(pk=intent.pk) if intent else None
    given: dict[str, Any] = {
        "reason": DecisionReason.LEDGER,
        "note": "",
        "seen": deciding.seen(entry, intent),
        "named": str(intent.pk) if intent else "",
    }
    return deciding.decide(review.pk, person=person, choice=choice, **(given | more))


def look_through() -> int:
    return look_back.run(budget_s=5)
