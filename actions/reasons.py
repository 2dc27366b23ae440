"""Every `status_reason` there is, with what it means. The documents' table is made from this one. Pure.

An intent that became unknown because its attempt got no usable answer has that attempt's own reason instead, such
as `read_timeout`: one of `actions.connectors.base.REASONS`.

Those in `HIDDEN` reach agents as `in_review`.
"""

from django.db.models import TextChoices


class Reason(TextChoices):
    # proposed
    RECORDED = "recorded", "It was recorded."
    NEEDS_APPROVAL = "needs_approval", "A person has to approve it before it is sent."
    CLAIMED = "claimed", "It is being carried out."
    REPLAYED = "replayed", "It is sent again with the same key, which the downstream carries out only once."
    APPROVED = "approved", "A person approved it."
    # never sent
    CANCELLED_BY_AGENT = "cancelled_by_agent", "The agent withdrew it."
    REJECTED = "rejected", "A person rejected it."
    EXPIRED = "expired", "Its time to be sent was over before it was sent."
    APPROVAL_EXPIRED = "approval_expired", "Nobody approved it in time."
    NOT_SENDABLE = "not_sendable", "It can't be sent as it is; nothing was sent."
    NOT_SENT = "not_sent", "The request did not leave; it will be sent later."
    NOT_SENT_GIVEN_UP = "not_sent_given_up", "It was never carried out, and the tries are used up."
    HELD_ON_DISPUTE = "held_on_dispute", "Something else on its subject is in question."
    HELD_ON_STOP = "held_on_stop", "A person stopped what concerns it."
    HELD_ON_OBJECTION = "held_on_objection", "What was looked at right before sending speaks against it."
    HELD_ON_REQUEST = "held_on_request", "A person wants to look at it before it is sent."
    # sent
    CONFIRMED_BY_ANSWER = "confirmed_by_answer", "The downstream acknowledged it."
    REFUSED = "refused", "The downstream refused it; it did nothing."
    EARLIER_ATTEMPT_OPEN = (
        "earlier_attempt_open",
        "This attempt did nothing, but an earlier one may have; we can't tell.",
    )
    CONTRADICTED = "contradicted", "It was said that nothing was sent, and there is evidence that something was."
    LEASE_OVER = "lease_over", "Whoever was sending it never said how it ended."
    REPORTED = "reported", "The caller reported it."
    REPORTED_UNKNOWN = "reported_unknown", "The caller doesn't know whether it happened."
    REPORT_UNVERIFIED = "report_unverified", "The caller reported an outcome, which is being verified."
    # found out
    FOUND_IN_LEDGER = "found_in_ledger", "The ledger shows it."
    FAILED_IN_LEDGER = "failed_in_ledger", "The ledger shows that it failed."
    ABSENT_FROM_LEDGER = "absent_from_ledger", "The ledger proves that it did not happen."
    IN_REVIEW = "in_review", "A person is looking at it."
    DECIDED = "decided", "A person established what happened."
    OVERRIDDEN = "overridden", "Two people corrected it."


# What agents don't read as it is: it would tell limits, suspicions or stops.
HIDDEN = frozenset(
    {
        Reason.HELD_ON_DISPUTE,
        Reason.HELD_ON_STOP,
        Reason.HELD_ON_OBJECTION,
        Reason.HELD_ON_REQUEST,
        "person_first",
    }
)


def public(reason: str) -> str:
    """The code that an agent may read."""
    return Reason.IN_REVIEW.value if reason in HIDDEN else reason
