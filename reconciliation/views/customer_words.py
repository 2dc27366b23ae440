"""What to tell the customer now, ready to copy: the sentence that agents read as `customer_message`, and what of it
can be said more exactly. Nothing internal, and nothing that we could not keep."""

from datetime import UTC, datetime

from actions import guidance, policy
from actions.api import showing
from actions.api.showing import Around, OpenReview
from actions.guidance import Situation
from actions.models import Intent
from actions.statuses import Status
from reconciliation.models import Purpose, Review
from reconciliation.views import comfort, words
from reconciliation.views.facts import Known


def told(intent: Intent, known: Known, review: Review | None, now: datetime) -> str:
    """One or two sentences. `review`: the intent's open case, if there is one."""
    open_ = None
    if review is not None and review.closed_at is None:
        purpose = showing.APPROVAL if review.purpose == Purpose.APPROVAL else showing.OUTCOME
        open_ = OpenReview(purpose, review.due_at)
    at = showing.situation(intent, now=now, around=Around(tuple(known.attempts), open_))
    first = guidance.customer_message(at, policy.read(intent.policy.text).customer_texts)
    return " ".join(filter(None, [first, _more(intent, at, review, now)]))


def _more(intent: Intent, at: Situation, review: Review | None, now: datetime) -> str:
    if at.status is Status.UNKNOWN or at.disputed:
        return _when(review, now)
    if at.status is not Status.CONFIRMED or intent.amount_minor is None:
        return ""
    settled = intent.settled_amount_minor is not None
    minor = intent.settled_amount_minor if settled else intent.amount_minor
    currency = (intent.settled_currency if settled else "") or intent.currency
    return f"The amount is {plain(words.amount(minor, currency))}."


def _when(review: Review | None, now: datetime) -> str:
    """Until when somebody will have looked: what we know by then we can tell, whatever it is."""
    times = [] if review is None or review.closed_at is not None else [review.due_at, review.waits_until]
    until = max((time for time in times if time is not None), default=None)
    if until is None or until <= now:
        return "We will tell you as soon as we know."
    return f"By {clock(until, now)} we will tell you what we know."


def clock(when: datetime, now: datetime) -> str:
    """`14:20 UTC`, or `14:20 UTC on 3 May`: in the time zone that the reader chose."""
    zone = comfort.zone() or UTC
    local, today = when.astimezone(zone), now.astimezone(zone)
    day = "" if local.date() == today.date() else f" on {local.day} {local:%B}"
    return f"{local:%H:%M} {local.tzname()}{day}"


def plain(text: str) -> str:
    """With spaces that every mail program and chat takes."""
    return " ".join(text.split())
