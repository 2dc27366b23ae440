"""What an agent should do next about an intent, and what it may say about it. Pure.

The wording is part of the contract: a model that reads "failed" about something that may have happened does it a
second time. So that word appears for what is settled as failed, and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from actions.reasons import Reason
from actions.statuses import SETTLED, Status

# How soon it is worth asking again, in seconds.
_SOON_S, _WHILE_SENDING_S, _WITHOUT_A_PLAN_S = 2, 5, 15
# A check needs a moment after it falls due before there is something to see.
_MARGIN = timedelta(seconds=1)
# People take their time; asking more often changes nothing.
_PERSON_S, _PERSON_AT_LEAST_S = 300, 60
_AT_MOST_S = 3_600


class Step(StrEnum):
    WAIT = "wait"
    WAIT_FOR_PERSON = "wait_for_person"
    SEND = "send"
    REPORT = "report"
    DONE = "done"


@dataclass(frozen=True)
class Situation:
    """What the advice rests on: the intent as it is now, and who asks.

    `own`: the reader's own intent, not one of its group. `may_send`: the reader holds the open attempt's token.
    `stopped`: its agent, kind or downstream is paused.
    `refused_for_good`: refused for a reason that proposing it again does not change.
    `effect_elsewhere`: the downstream said that the same effect exists already, by another request.
    """

    status: Status
    reason: str
    now: datetime
    by_caller: bool = False
    disputed: bool = False
    review_open: bool = False
    review_due_at: datetime | None = None
    own: bool = True
    may_send: bool = False
    stopped: bool = False
    attempt_open: bool = False
    effect_elsewhere: bool = False
    refused_for_good: bool = False
    lease_until: datetime | None = None
    send_before: datetime | None = None
    next_attempt_at: datetime | None = None
    next_check_at: datetime | None = None

    @property
    def settled(self) -> bool:
        """Settled, and nothing has put that in question since."""
        return self.status in SETTLED and not self.disputed

    @property
    def with_a_person(self) -> bool:
        return not self.settled and (self.disputed or self.review_open or self.status is Status.HELD)

    @property
    def too_old_to_send(self) -> bool:
        return self.send_before is not None and self.send_before <= self.now

    @property
    def can_be_claimed(self) -> bool:
        return self.status is Status.RECORDED and not self.too_old_to_send and not self.stopped


def next_step(at: Situation) -> Step:
    if at.settled:
        return Step.DONE
    if at.with_a_person:
        return Step.WAIT_FOR_PERSON
    if not at.by_caller or not at.own:
        return Step.WAIT
    if at.may_send or at.can_be_claimed:
        return Step.SEND
    return Step.REPORT if at.status is Status.SUBMITTED and at.attempt_open else Step.WAIT


def next_step_after_refusal(at: Situation) -> Step:
    """What to do for somebody whose own proposal was refused because of this intent: never to send anything."""
    return Step.WAIT_FOR_PERSON if at.with_a_person else Step.WAIT


def ask_again_at(at: Situation) -> datetime | None:
    """When asking again can show something new; None once it is settled. Always ahead of now."""
    if at.settled:
        return None
    if at.with_a_person:
        return _person_may_have_decided(at)
    due, otherwise_s = {
        Status.RECORDED: (at.next_attempt_at, _SOON_S),
        Status.SUBMITTED: (None if at.attempt_open else at.next_check_at, _WHILE_SENDING_S),
        Status.UNKNOWN: (_earlier(at.next_check_at, at.next_attempt_at), _WITHOUT_A_PLAN_S),
    }.get(at.status, (None, _WITHOUT_A_PLAN_S))
    if due is None:
        return at.now + timedelta(seconds=otherwise_s)
    earliest_s = 1 if at.status is Status.UNKNOWN else _SOON_S
    return _within(at.now, due + _MARGIN, earliest_s, _AT_MOST_S)


def _earlier(one: datetime | None, other: datetime | None) -> datetime | None:
    return min((time for time in (one, other) if time is not None), default=None)


def _person_may_have_decided(at: Situation) -> datetime:
    if at.review_due_at is None:
        return at.now + timedelta(seconds=_PERSON_S)
    return _within(at.now, at.review_due_at, _PERSON_AT_LEAST_S, _PERSON_S)


def _within(now: datetime, wanted: datetime, least_s: int, most_s: int) -> datetime:
    return max(now + timedelta(seconds=least_s), min(wanted, now + timedelta(seconds=most_s)))


# Withdrawn by nobody's judgement: the agent itself changed its mind, or time ran out.
_MAY_COME_BACK = frozenset({Reason.CANCELLED_BY_AGENT, Reason.EXPIRED, Reason.APPROVAL_EXPIRED})


def may_propose_again(at: Situation) -> bool:
    """Whether a new intent for the same thing is sensible. No permission: limits and the guard still decide."""
    if at.disputed or at.review_open or at.effect_elsewhere or at.refused_for_good:
        return False
    if at.status is Status.FAILED:
        return True
    return at.status is Status.CANCELLED and at.reason in _MAY_COME_BACK


# --- one plain sentence or two for a model

_HELD = (
    "It is recorded and has not been sent: a person has to approve it first. "
    "Don't propose it again; end your turn and read this record at the time given."
)
_RECORDED = (
    "It is recorded and will be sent shortly; nothing has been sent yet. "
    "Read this record again to see what came of it."
)
_NOT_LEFT = "The last request provably never left, so nothing has happened yet; it will be sent later by itself."
_RECORDED_FOR_CALLER = (
    "It is recorded and nothing has been sent yet: claim it first, then send it with its idempotency key, "
    "then report what came of it."
)
_STOPPED = (
    "It is recorded and nothing has been sent yet; at the moment it may not be sent. Read this record again later."
)
_RECORDED_WITH_PERSON = "It is recorded and nothing has been sent yet; a person is looking at it."
_TOO_OLD = "Its time to be sent is over and nothing was sent; it will be withdrawn."
_SENDING = "It is being sent; whether it happens is not known yet. Don't propose it again: a repeat will be refused."
_ACCEPTED = (
    "The other side has accepted it and has not finished it yet. Don't propose it again: a repeat will be refused."
)
_MAY_SEND = "You may send it now, with its idempotency key and no other; then report what came of it."
_CLAIMED = (
    "It is claimed and may have been sent. Whoever claimed it has to report what came of it; "
    "a repeat will be refused."
)
_UNKNOWN = "It may have happened: it was sent and no usable answer came. A repeat will be refused."
_LOOKED_UP = "The books are being looked into, and this record will show what they say."
_PERSON_FINDS_OUT = "A person is finding out what happened, and this record will show it."
_DISPUTED = (
    "New facts contradict what was established earlier, so it may have happened or not. "
    "A repeat will be refused; a person is finding out, and this record will show it."
)
_CONFIRMED = "It is done and confirmed. Don't propose it again."
_ELSEWHERE = "This request failed because the same effect exists already, by another request. Don't propose it again."
_FAILED = "It failed and had no effect."
_TOO_LATE = "It failed: its time to be sent was over before it was carried out, and it had no effect."
_NEW_KEY = "It may be proposed again, under a new Idempotency-Key."
_ONLY_PERSON = "Don't propose it again."
_CANCELLED: Mapping[str, str] = {
    Reason.CANCELLED_BY_AGENT: "It was withdrawn by its agent before anything was sent.",
    Reason.EXPIRED: "Its time to be sent was over, so it was withdrawn; nothing was sent.",
    Reason.APPROVAL_EXPIRED: "Nobody approved it in time, so it was withdrawn; nothing was sent.",
    Reason.REJECTED: "A person decided against it; nothing was sent.",
}
_WITHDRAWN = "It was withdrawn by a person; nothing was sent."


def message(at: Situation) -> str:
    if at.disputed:
        return _DISPUTED
    if at.status in (Status.FAILED, Status.CANCELLED):
        return _message_of_end(at)
    return {
        Status.HELD: _HELD,
        Status.RECORDED: _message_of_recorded(at),
        Status.SUBMITTED: _message_of_submitted(at),
        Status.UNKNOWN: f"{_UNKNOWN} {_PERSON_FINDS_OUT if at.review_open else _LOOKED_UP}",
        Status.CONFIRMED: _CONFIRMED,
    }[at.status]


def _message_of_recorded(at: Situation) -> str:
    if at.review_open:
        return _RECORDED_WITH_PERSON
    if at.too_old_to_send:
        return _TOO_OLD
    if at.by_caller:
        return _STOPPED if at.stopped else _RECORDED_FOR_CALLER
    return _NOT_LEFT if at.reason == Reason.NOT_SENT else _RECORDED


def _message_of_submitted(at: Situation) -> str:
    if at.review_open:
        return f"It may have been sent; a repeat will be refused. {_PERSON_FINDS_OUT}"
    if at.may_send:
        return _MAY_SEND
    if not at.attempt_open:
        return _ACCEPTED
    return _CLAIMED if at.by_caller else _SENDING


def _message_of_end(at: Situation) -> str:
    if at.status is Status.FAILED and at.effect_elsewhere:
        return _ELSEWHERE
    if at.status is Status.FAILED:
        what = _TOO_LATE if at.reason == Reason.EXPIRED else _FAILED
    else:
        what = _CANCELLED.get(at.reason, _WITHDRAWN)
    return f"{what} {_NEW_KEY if may_propose_again(at) else _ONLY_PERSON}"


# --- one plain sentence for the customer, without internals

_FOR_CUSTOMER: Mapping[Status, str] = {
    Status.HELD: "Your request has been received and is being looked at.",
    Status.RECORDED: "Your request has been received and is being processed.",
    Status.SUBMITTED: "Your request is being processed.",
    Status.UNKNOWN: (
        "Your request is being processed, and we are making sure that it went through; "
        "there is no need to ask for it a second time."
    ),
    Status.CONFIRMED: "Your request has been completed.",
    Status.FAILED: "Your request could not be completed; nothing was changed.",
    Status.CANCELLED: "Your request was withdrawn; nothing was changed.",
}


def customer_message(at: Situation, texts: Mapping[str, str]) -> str:
    """The kind's own text for the status (`texts`), or a sentence that is true of every kind.

    What was established and then put in question is told as if it were not known: the customer gets no story that
    has to be taken back a second time.
    """
    status = Status.UNKNOWN if at.disputed else at.status
    return texts.get(status) or _FOR_CUSTOMER[status]
