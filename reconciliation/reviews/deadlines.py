"""When a case is due: as its policy said when it was opened, and later by what it stood still for outages. The one
place that knows, for opening it and for coming back to it, because no column keeps it while the case waits."""

from datetime import datetime, timedelta
from typing import Final

from django.db.models import Min

from actions import policy
from actions.models import Intent, Kind
from reconciliation.models import Incident, LedgerEntry, Purpose, Review

# Where its downstream has no kind that says it.
_OF_ENTRY = timedelta(hours=4)
# What `put_off` changes, besides when the case is due.
STOOD_STILL: Final = ("stood_still", "stood_until")


def for_intent(intent: Intent, *, opened_at: datetime) -> datetime:
    """Of a case about an intent: so long after it was opened as its policy says."""
    return opened_at + timedelta(seconds=policy.read(intent.policy.text).review_due_s)


def for_entry(entry: LedgerEntry, *, opened_at: datetime) -> datetime:
    """Of a case about an entry: as soon as the most urgent kind of its downstream would be."""
    shortest = Kind.objects.filter(downstream=entry.downstream_id).aggregate(Min("review_due_s"))["review_due_s__min"]
    return opened_at + (_OF_ENTRY if shortest is None else timedelta(seconds=shortest))


def before_expiry(intent: Intent, due_at: datetime) -> datetime:
    """No later than its approval expires."""
    return due_at if intent.approve_before is None else min(due_at, intent.approve_before)


def of(review: Review) -> datetime:
    """Of an open case, as if nobody had ever put it aside. What it stood still for an outage counts all the same."""
    if review.intent is None:
        assert review.entry is not None
        return for_entry(review.entry, opened_at=review.opened_at)
    found = for_intent(review.intent, opened_at=review.opened_at) + review.stood_still
    return before_expiry(review.intent, found) if review.purpose == Purpose.APPROVAL else found


def put_off(review: Review, incident: Incident, *, until: datetime) -> None:
    """A case that waited for the end of an incident is due so much later as it stood still until then; what was
    counted before, for this incident or another one, is not counted again. Changes `due_at` and
    `STOOD_STILL` of `review`, to be saved."""
    since = max(incident.opened_at, review.opened_at, review.stood_until or review.opened_at)
    if until > since:
        review.due_at += until - since
        review.stood_still += until - since
        review.stood_until = until


def brought_forward(review: Review, now: datetime) -> datetime:
    """When a case is due that comes back before its time: as before it waited, or now when that is past. Never later
    than it is due already."""
    return min(review.due_at, max(of(review), now))
