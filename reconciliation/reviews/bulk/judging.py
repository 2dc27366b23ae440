"""What can be done with each of many, and what can't and why. Reads; changes nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.contrib.auth.models import User
from django.db.models import TextChoices

from actions import outcomes, policy
from actions.models import Intent
from actions.statuses import SETTLED, Status
from reconciliation import checks
from reconciliation.models import Choice, DecisionReason, Purpose, Review, WaitsFor
from reconciliation.reviews import claiming, people
from reconciliation.reviews.bulk.rows import Row


class Bulk(TextChoices):
    """What can be done with many at once. That something happened, did not, or may be sent is not among it."""

    CHECK = "check", "Look again"
    ASSIGN = "assign", "Assign"
    WAIT = "wait", "Put aside"
    CANCEL = "cancel", "Cancel"
    REJECT = "reject", "Reject"


@dataclass(frozen=True)
class Asked:
    """What goes for all of them: who, why, until when."""

    note: str = ""
    to: User | None = None
    reason: DecisionReason | None = None
    waits_for: WaitsFor | None = None
    reference: str = ""
    until: datetime | None = None
    longest: datetime | None = None


class State(StrEnum):
    CAN = "can"
    ALREADY = "already"
    CANT = "cant"


@dataclass(frozen=True)
class Judged:
    """What would happen with one row, in words."""

    row: Row
    state: State
    words: str


MOVED = "It has changed since you were shown this list, so nothing was done: look at it anew."
_GONE = "There is no such case or intent."
_NO_CASE = "It has no open case."
_UNSENT = (Status.HELD, Status.RECORDED)
_FOLLOWS: Mapping[Bulk, str] = {
    Bulk.CHECK: "Looked up in the ledger within moments.",
    Bulk.ASSIGN: "Becomes theirs, with your note.",
    Bulk.WAIT: "Leaves the queue until then; looks go on.",
    Bulk.CANCEL: "Withdrawn, never sent. The agent is told not to propose it again.",
    Bulk.REJECT: "Rejected, never sent. The agent is told not to propose it again.",
}


def judge(action: Bulk, row: Row, *, asked: Asked, person: User, now: datetime) -> Judged:
    """Whether `person` may do it with this row now. Whoever does it checks again, under the row's lock."""
    if not row.there:
        return Judged(row, State.CANT, _GONE)
    if done := _ALREADY[action](row, asked, now):
        return Judged(row, State.ALREADY, done)
    if why := _AGAINST[action](row, person, now):
        return Judged(row, State.CANT, why)
    return Judged(row, State.CAN, _FOLLOWS[action])


def _open(row: Row) -> Review | None:
    return row.review if row.review is not None and row.review.closed_at is None else None


# Done already, as a second press of the same button finds it


def _cancelled(row: Row, asked: Asked, now: datetime) -> str:
    return "It is cancelled already." if row.intent is not None and row.intent.status == Status.CANCELLED else ""


def _rejected(row: Row, asked: Asked, now: datetime) -> str:
    if any(one.choice == Choice.REJECT and one.takes_effect_at is not None for one in row.decisions):
        return "It is rejected already; that takes effect in a moment."
    return _cancelled(row, asked, now)


def _theirs(row: Row, asked: Asked, now: datetime) -> str:
    review = _open(row)
    return "It is theirs already." if review and asked.to and review.owner_id == asked.to.pk else ""


def _aside(row: Row, asked: Asked, now: datetime) -> str:
    review = _open(row)
    waits = review is not None and review.waits_until is not None and review.waits_until > now
    return "It is put aside already; on its page that can be changed." if waits else ""


def _asked_for(row: Row, asked: Asked, now: datetime) -> str:
    intent = row.intent
    if intent is None or intent.status not in checks.LOOKED_AT or intent.next_check_at is None:
        return ""
    return "It is to be looked at already." if intent.next_check_at <= now else ""


# What speaks against it


def not_to_look(intent: Intent | None, now: datetime) -> str:
    """Why a look can't be asked for; "" when it can."""
    if intent is None:
        return "It is about an entry of the ledger, which no look-up explains: open it by itself."
    if intent.status not in checks.LOOKED_AT or intent.first_maybe_sent_at is None:
        return "Nothing was sent, so there is nothing to look for."
    if intent.status == Status.SUBMITTED and intent.lease_until is not None and intent.lease_until > now:
        return "It is being sent at this moment."
    if not policy.can_look_up(policy.read(intent.policy.text)):
        return "This downstream has no look-up: only outside evidence can tell."
    return ""


def _not_to_look(row: Row, person: User, now: datetime) -> str:
    return not_to_look(row.intent, now)


def _not_to_cancel(row: Row, person: User, now: datetime) -> str:
    intent = row.intent
    if intent is None:
        return "It is about an entry of the ledger: there is nothing to cancel."
    if intent.status in SETTLED:
        return f"It is {intent.status} already."
    if intent.status not in _UNSENT or not outcomes.proven_unsent(intent):
        return "It may have been sent: it can't be cancelled any more."
    return _anothers(row, person, now)


def _not_to_reject(row: Row, person: User, now: datetime) -> str:
    review, intent = _open(row), row.intent
    if review is None or intent is None or review.purpose != Purpose.APPROVAL or intent.status != Status.HELD:
        return "It does not wait for an approval: there is nothing to reject."
    if review.recommendation not in ("", Choice.REJECT):
        return "The recommendation is another one: decide it by itself."
    if row.decisions:
        return "Somebody has decided or voted on it: open it by itself."
    if review.customer_waiting:
        return "Its customer is waiting: decide it by itself."
    return _anothers(row, person, now, even_for_supervisors=True)


def _not_to_assign(row: Row, person: User, now: datetime) -> str:
    return _anothers(row, person, now) if _open(row) is not None else _NO_CASE


def _not_to_wait(row: Row, person: User, now: datetime) -> str:
    if _open(row) is None:
        return _NO_CASE
    if row.decisions:
        return "Somebody has decided or voted on it: open it by itself."
    return _anothers(row, person, now, even_for_supervisors=True)


def _anothers(row: Row, person: User, now: datetime, *, even_for_supervisors: bool = False) -> str:
    """Nobody's work is taken from under their hands; a supervisor's word goes where the function lets it."""
    review = _open(row)
    if review is None or (people.may_supervise(person) and not even_for_supervisors):
        return ""
    if claiming.holds_now(review, now) and review.holder_id != person.pk:
        return f"{_name(review.holder)} works on it at this moment."
    if review.owner_id not in (None, person.pk):
        return f"It belongs to {_name(review.owner)}."
    return ""


def _name(user: User | None) -> str:
    return (user.get_full_name() or user.get_username()) if user is not None else "somebody else"


_ALREADY: Mapping[Bulk, Callable[[Row, Asked, datetime], str]] = {
    Bulk.CHECK: _asked_for,
    Bulk.ASSIGN: _theirs,
    Bulk.WAIT: _aside,
    Bulk.CANCEL: _cancelled,
    Bulk.REJECT: _rejected,
}
_AGAINST: Mapping[Bulk, Callable[[Row, User, datetime], str]] = {
    Bulk.CHECK: _not_to_look,
    Bulk.ASSIGN: _not_to_assign,
    Bulk.WAIT: _not_to_wait,
    Bulk.CANCEL: _not_to_cancel,
    Bulk.REJECT: _not_to_reject,
}
